"""Folders that tests read."""

from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
SHARED = ROOT.parent / "shared" / "data"
CONFORMANCE = TESTS / "conformance"
"""The score table that was made to print the paper's tables."""
