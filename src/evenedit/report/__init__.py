"""Estimates in, a report out: one HTML page, tables and figures as files, `results.json`."""

from evenedit.report.pages.report import ExampleCase, write_report
from evenedit.report.text.summary import Sentence, summarise

__all__ = ["ExampleCase", "Sentence", "summarise", "write_report"]
