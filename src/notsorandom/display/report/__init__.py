"""A page that a person opens: what was learned, in one file."""

from notsorandom.display.report.model import write_report
from notsorandom.display.report.page import write_page

__all__ = ["write_page", "write_report"]
