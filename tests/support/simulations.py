"""How many studies a test simulates, and how far a share of them may be from its nominal value."""

import os

from scipy.stats import binom

FULL = os.environ.get("EVENEDIT_TESTS") == "full"
"""Whether tests have their full size, as in `make validate`; otherwise a quarter of it."""


def studies(count: int) -> range:
    """Return the seeds of a test that simulates `count` studies at full size."""
    return range(count if FULL else -(-count // 4))


def fewest(count: int, rate: float) -> int:
    """Return the lower end of the 99.9 % binomial range of `count` trials at a nominal rate."""
    return int(binom.ppf(0.0005, count, rate))
