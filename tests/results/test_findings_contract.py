"""`results.json["findings"]`: every field is there in every finding, and holds what the contract says."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, get_args

import pytest

from evenedit.results.finding import CLEAR, EFFECT_LEVELS, FindingKind, FindingLevel
from tests.support.random_studies import random_study

FIELDS = {
    *("kind", "level", "experiment", "condition", "editor", "measure", "rater", "factor", "group", "against"),
    *("value", "low", "high", "p", "p_raw", "n", "faces", "text", "cases", "evidence", "estimand"),
}
EVIDENCE = {
    "clear": ("people", "instrument", "outcome"),
    "clear_to_judges": ("judges",),
    "clear_to_judge": ("one_judge",),
}
"""Who can make a finding as clear as that."""
STUDIES = (4, 13, 31, 502, 613, 181_033, 181_072)
"""Random studies with judges, instruments, people, mitigation, stereotypes, one face, and factors of their own."""


def findings() -> Iterator[tuple[int, Mapping[str, Any], Mapping[str, Any]]]:
    for seed in STUDIES:
        written = json.loads(random_study(seed).results().to_json())
        yield from ((seed, written, f) for f in written["findings"])


ALL = list(findings())


def test_the_studies_have_findings_of_most_kinds() -> None:
    assert {f["kind"] for *_, f in ALL} >= {"shift", "gap", "mitigation", "stereotype", "people", "design", "judge"}
    assert {"condition": "placebo"} in [f["against"] for *_, f in ALL]


@pytest.mark.parametrize(("seed", "written", "f"), ALL, ids=lambda x: str(x) if isinstance(x, int) else "")
def test_what_does_not_apply_is_null_never_absent(seed: int, written: Mapping[str, Any], f: Mapping[str, Any]) -> None:
    assert set(f) >= FIELDS
    assert f["kind"] in get_args(FindingKind) and f["level"] in get_args(FindingLevel)
    assert f["group"] is None or isinstance(f["group"], dict)
    assert f["against"] is None or isinstance(f["against"], dict) or f["against"] in ("no_change", "average")
    assert f["rater"] in (None, "ensemble", "people", *(m["rater"] for m in written["measured"])) or (
        f["kind"] == "judge"
    )
    assert isinstance(f["cases"], list) and isinstance(f["text"], str) and f["text"]
    if f["level"] in CLEAR:
        assert f["p"] < 0.05
        assert f["evidence"] in EVIDENCE[f["level"]]
    if f["level"] == "suggestive":
        assert f.get("q", 1) <= 0.05 or f["p"] < 0.05
    if f["evidence"] == "none":
        assert f["level"] == "cannot_tell" and "%" not in f["text"] and f["value"] is None
    if f["level"] in EFFECT_LEVELS and f["kind"] in ("shift", "gap"):
        assert f["estimand"], "what it is about"
        if f["evidence"] in ("judges", "one_judge"):
            assert f["estimand"].endswith("not checked by people.")
    if f["level"] == "clear_to_judges" and f["kind"] in ("shift", "gap"):
        assert f["reliability"]["low"] >= written["rules"]["reliability"]
    if f["p"] is not None and f["p_raw"] is not None:
        assert f["p"] >= f["p_raw"] - 1e-12, "adjusted"
    if f["kind"] in ("shift", "gap") and f["value"] is not None:
        assert -1 <= f["value"] <= 1, "a fraction"
