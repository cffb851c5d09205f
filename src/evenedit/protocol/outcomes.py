"""Rates of how edits ended: the editor itself states them, so they need no rater."""

from __future__ import annotations

from collections.abc import Mapping

from evenedit.core.records import WITHOUT_PICTURE, Outcome

OUTCOME_RATES: Mapping[str, frozenset[Outcome]] = {
    "refused": frozenset({Outcome.REFUSED}),
    "no_image": frozenset({Outcome.NO_IMAGE}),
    "no_picture": WITHOUT_PICTURE,
}
"""By rate, the outcomes that it counts, of all edits that did not fail."""
