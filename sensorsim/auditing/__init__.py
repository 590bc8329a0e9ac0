"""Audits: run the real kernel and look for a leak, as an attacker would.

Three questions, over every field of a packet, pairs of fields and consecutive packets, at several inputs. Do the values
follow the distribution that the certificate is about? Is anything dependent that should not be? And what does an event
cost, chosen or learned on some draws and measured on others: a lower bound on epsilon. A bound above the claim is a
leak. No leak found is no proof: that is what the certificate is for.

packet_source.py       what is audited; table_sources.py makes a source of a table
sequential_audit.py    draws in growing batches, and the result
cell_counts.py         counting, and learning an event; hypothesis_tests.py tests the counts
"""

from sensorsim.auditing.hypothesis_tests import Check, Event, Look
from sensorsim.auditing.packet_source import Field, Input, Source
from sensorsim.auditing.sequential_audit import Audit, examine
from sensorsim.auditing.table_sources import make_source

__all__ = ["Audit", "Check", "Event", "Field", "Input", "Look", "Source", "examine", "make_source"]
