"""One self-contained HTML page on what a private record costs, protects and delivers.

request.py     parameters and defaults of a report; commands that reproduce its sections
inputs.py      files of earlier commands, with their hashes
findings.py    all values of a page, computed by the functions behind the other commands
charts.py      geometry of the figures
page.py        `make_report(…)`, its result, and the rendering of templates/
"""

from sensorsim.reporting.page import Report, make_report
from sensorsim.reporting.request import ReportRequest

__all__ = ["Report", "ReportRequest", "make_report"]
