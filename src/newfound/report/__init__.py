"""The report: a stream of discoveries as one HTML file that needs nothing else."""

from newfound.report.page import render, write_report
from newfound.report.story import Story

__all__ = ["Story", "render", "write_report"]
