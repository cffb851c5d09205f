"""Ratings → estimates: means, rates, gaps and deltas with honest intervals."""

from evenedit.stats.analyse import KnownEffect, analyse
from evenedit.stats.engine.rules import AnalysisRules

__all__ = ["AnalysisRules", "KnownEffect", "analyse"]
