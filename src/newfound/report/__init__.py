"""The report: a stream of discoveries as one HTML file that needs nothing else."""

from newfound.report.page import render, write_report
from newfound.report.story import Story
from newfound.report.telling import tell

__all__ = ["Story", "render", "tell", "write_report"]
