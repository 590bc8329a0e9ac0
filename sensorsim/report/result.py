"""`report(…)`: the page as one value, for the command line and for notebooks."""

from dataclasses import dataclass
from typing import Any

from sensorsim.files import Name, check_targets, write_whole
from sensorsim.report.asked import FILES, Wanted
from sensorsim.report.gather import Findings, Told, gather
from sensorsim.report.page import TITLE, page


@dataclass(frozen=True, repr=False)
class Report:
    """A page and the values in it."""

    findings: Findings
    html: str

    def __repr__(self) -> str:
        plan = self.findings.plan
        return f"Report({plan!r}, {len(self.html.encode()):,} bytes of HTML; .write(path) keeps it)"

    def _repr_html_(self) -> str:
        """The answer alone: a notebook has a style of its own."""
        from sensorsim.report.opening import opening
        from sensorsim.report.parts import tag

        return tag("section", tag("h2", TITLE), opening(self.findings))

    def write(self, path: Name) -> None:
        """Whole or not at all."""
        check_page(path, self.findings.wanted)
        write_whole(path, self.html)


def check_page(path: Name, wanted: Wanted) -> None:
    """Refuse a place that the page cannot be written to, or that it is read from."""
    from os import fspath

    check_targets([fspath(path)], read=[getattr(wanted, name) for name in FILES])


def report(*, told: Told = lambda text: None, **chosen: Any) -> Report:
    """One page on what a private record costs, protects and delivers; `chosen` are the fields of `Wanted`.

    `told` hears what is being done.
    """
    found = gather(Wanted(**chosen), told)
    return Report(found, page(found))
