"""As which levels of a factor portraits and edits are seen: the rows of `results.json["directions"]`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Direction:
    """One number about the levels that pictures are seen as, before the edit and after it."""

    factor: str
    measure: str
    """`transition.race_seen[A>B]`, `flow.race_seen[A>B]` (once for each pair, in the factor's order),
    `toward.race_seen[A]`, `destination.race_seen[A]`, `rate.race_seen_changed` or `mean.age_seen_steps`."""
    before: str
    """The level that portraits were seen as; empty for any."""
    after: str
    """The level that edits were seen as; empty for any."""
    experiment: str
    condition: str
    editor: str
    value: float
    low: float | None
    high: float | None
    total: int
    """The numerator: edits, of a flow and of toward edits one way minus edits the other way."""
    n: int
    """The denominator: edits."""
    missing: int
    """Further edits of the same kind without a reading of the portrait or of the edit."""
    faces: int
    """Portraits that the edits are of."""
    prompts: int
    """Prompts that they answer."""
    p: float | None = None
    """Of a flow or toward against 0, not adjusted; None where it is not tested."""
    p_adjusted: float | None = None
    """Holm's adjustment for all tests of the report."""
    q: float | None = None
    """Benjamini and Hochberg's adjustment for the same tests."""
    control: float | None = None
    """The same number where the second reading of the portrait takes the place of the edit's: reading noise."""
    control_low: float | None = None
    control_high: float | None = None
    beyond: float | None = None
    """The number minus its control, over edits whose portrait was read twice."""
    beyond_low: float | None = None
    beyond_high: float | None = None
