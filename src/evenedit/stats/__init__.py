"""Compute estimates, intervals, tests and findings from ratings."""

from evenedit.stats.engine.rules import AnalysisRules, KnownEffect, StudyFacts
from evenedit.stats.pipeline import analyse

__all__ = ["AnalysisRules", "KnownEffect", "StudyFacts", "analyse"]
