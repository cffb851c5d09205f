"""A name for what results are computed from."""

from __future__ import annotations

from evenedit.core.hashing import digest
from evenedit.core.version import __version__
from evenedit.ratings.digest import table_digest
from evenedit.ratings.table import RatingTable
from evenedit.stats.engine.rules import AnalysisRules


def digest_of(table: RatingTable, rules: AnalysisRules) -> str:
    """Return the name of the table, the rules and this release's way to compute."""
    return digest([table_digest(table), rules.to_dict(), __version__])
