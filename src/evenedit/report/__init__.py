"""Estimates in, a report out: one HTML page, tables and figures as files, `results.json`."""

from evenedit.report.pages.report import Example, write_report
from evenedit.report.text.summary import Sentence, summarise

__all__ = ["Example", "Sentence", "summarise", "write_report"]
