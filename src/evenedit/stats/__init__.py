"""Compute estimates, intervals, tests and findings from ratings."""

from evenedit.stats.engine.parts import StudyFacts
from evenedit.stats.engine.rules import AnalysisRules, KnownEffect
from evenedit.stats.pipeline import analyse

__all__ = ["AnalysisRules", "KnownEffect", "StudyFacts", "analyse"]
