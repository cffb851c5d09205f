"""The report made from results: one HTML page, tables and figures as files, and `results.json`."""

from evenedit.report.contents import begin_figures
from evenedit.report.pages.report import ExampleCase, write_report
from evenedit.report.text.summary import Sentence, summarise

__all__ = ["ExampleCase", "Sentence", "begin_figures", "summarise", "write_report"]
