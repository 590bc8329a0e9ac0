"""Make one self-contained HTML page on what a private record costs, protects and delivers."""

from sensorsim.reporting.page import Report, make_report
from sensorsim.reporting.request import ReportRequest

__all__ = ["Report", "ReportRequest", "make_report"]
