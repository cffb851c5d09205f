"""Compute estimates, intervals, tests and findings from ratings."""

from evenedit.core.records import KnownEffect
from evenedit.stats.engine.rules import AnalysisRules, StudyFacts
from evenedit.stats.pipeline import analyse

__all__ = ["AnalysisRules", "KnownEffect", "StudyFacts", "analyse"]
