"""Audit: run the real kernel and look for a leak, as an attacker would.

Three questions, over every field of a packet, two fields at a time and packets that follow each other, at several
inputs. Do the values follow the distribution that the certificate is about? Is anything dependent that should not be?
And what does an event cost, chosen or learnt on some draws and measured on others: a lower bound on epsilon. A bound
above what is claimed is a leak. No leak found is no proof: that is what the certificate is for.

    source.py    what is looked at; sources.py makes one of a table, captures.py of a board's packets
    run.py       draws in growing batches; looks.py looks after each
    cells.py, tally.py, learn.py        counting, and learning an event
    bounds.py, chisquare.py             the statistics
"""

from typing import TYPE_CHECKING

from sensorsim.privacy.audit.result import Audit, Check, Event, Look
from sensorsim.privacy.audit.run import Progress, examine
from sensorsim.privacy.audit.source import Field, Input, Source
from sensorsim.privacy.audit.sources import make_source

if TYPE_CHECKING:
    from sensorsim.privacy.tables import NoiseTable

__all__ = ["Audit", "Check", "Event", "Field", "Input", "Look", "Source", "audit", "examine", "make_source"]


def audit(
    table: "NoiseTable",
    mechanism: str | None = None,
    draws: int = 10**8,
    seed: int = 0,
    confidence: float = 0.9999,
    threads: int = 1,
    progress: Progress = lambda drawn: None,
) -> Audit:
    """Draw from the kernel that uses this table and look for a leak."""
    return examine(make_source(table, mechanism), draws, seed, confidence, threads, progress)
