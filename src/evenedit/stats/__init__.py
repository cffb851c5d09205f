"""Ratings → estimates: means, rates, gaps and deltas with honest intervals."""

from evenedit.stats.analysis import Effect, analyse
from evenedit.stats.rules import AnalysisRules

__all__ = ["AnalysisRules", "Effect", "analyse"]
