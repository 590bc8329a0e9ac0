"""`sensorsim report`: one page, self-contained."""

from collections.abc import Callable
from dataclasses import dataclass, fields

from sensorsim._util import progress
from sensorsim._util.errors import InputError
from sensorsim._util.option_kinds import Function, Output
from sensorsim.commands.declare import Command, option
from sensorsim.reporting.page import Report, make_report
from sensorsim.reporting.request import ReportRequest


@dataclass(frozen=True)
class WriteReport(ReportRequest, Command[Report]):
    """The page is for people who run no commands: a single HTML file, without script and without any request: for a
    phone, for print, for a screen reader. All of it is computed or proved now, or read from the files that are given;
    below each section stands the command that computes it again, but for what was read from a file. The same input
    gives the same bytes.
    """

    example = "sensorsim report --out report.html --fleet fleet.sqlite --package firmware/privacy"
    formats = ()

    out: str | None = option(None, Output(), "The page, as in report.html.")
    told: Callable[[str], None] | None = option(None, Function(), "Is called with each step.", shell=False)

    def run(self) -> Report:
        if self.out is None and progress.is_shown():
            raise InputError("--out is missing; give the page a name, as in report.html.")
        request = ReportRequest(**{each.name: getattr(self, each.name) for each in fields(ReportRequest)})
        with progress.phases("starting") as phase:
            made = make_report(request, self.told or phase)
        if self.out is not None:
            made.write(self.out)
        return made

    def text(self, answer: Report) -> str:
        return f"{self.out}: {len(answer.html.encode()):,} bytes"
