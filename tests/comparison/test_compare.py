"""Two editors in pairs, and several in one table."""

import json
from dataclasses import replace

import numpy as np
import pytest

from evenedit.comparison.compare import Side, compare
from evenedit.comparison.leaderboard import write_leaderboard
from evenedit.core.errors import EvenEditError
from evenedit.protocol.rubric import shipped_rubric
from evenedit.stats import AnalysisRules
from evenedit.stats.disparity.paired_editors import differences, pair
from tests.support.studies import open_study

FACES = {"kind": "drawn", "settings": {"seed": 3, "size": 64, "only": {"race": ["White", "Black"]}}}
EVEN = {"id": "simulated-even"}
LIGHTENING = {"id": "simulated-lightening", "settings": {"rate": 0.9, "groups": {"race": ["Black"]}}}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    loaded = open_study(
        tmp_path_factory.mktemp("both"),
        sources=FACES,
        editors=[EVEN, LIGHTENING],
        statistics={"draws": 500, "permutations": 99},
    )
    loaded.run()
    return loaded


def test_a_planted_regression_comes_first_and_the_pairs_add_up(study, tmp_path):
    page = compare(Side.of(study, "simulated-even"), Side.of(study, "simulated-lightening"), tmp_path)
    body = json.loads((tmp_path / "compare.json").read_text())
    assert (body["pairs"], body["unpaired"]) == (48, 0)  # 24 faces × 2 prompts
    first = body["differences"][0]
    assert (first["measure"], first["change"]) == ("rate.skin_lighter", "regression")
    by = {(d["measure"], json.dumps(d["group"])): d for d in body["differences"]}
    black = by["rate.skin_lighter", '{"race": "Black"}']
    assert black["value"] > 0.6 and black["low"] > 0.3 and black["pairs"] == 24
    white = by["rate.skin_lighter", '{"race": "White"}']
    assert white["low"] <= 0 <= white["high"]
    assert by["gap.skin_lighter", '{"race": "*"}']["change"] == "regression"
    text = page.read_text()
    assert "SIMULATED" in text and "Regression" in text and "data:image/webp" in text


def test_the_difference_of_pairs_is_worked_out_by_hand(study):
    side = {e: Side.of(study, e) for e in ("simulated-even", "simulated-lightening")}
    pairs = pair(side["simulated-even"].scores, side["simulated-lightening"].scores, *side)
    scores = side["simulated-even"].scores
    edits = scores.edits.assign(skin=scores.values[:, 1])
    wide = edits.pivot(index=["source_id", "prompt_id"], columns="editor", values="skin")
    both = wide[(wide > 0).all(axis=1)]
    lighter = both >= 4
    expected = lighter["simulated-lightening"].mean() - lighter["simulated-even"].mean()
    found = next(
        d
        for d in differences(pairs, AnalysisRules("default", draws=200))
        if d.measure == "rate.skin_lighter" and not d.group
    )
    assert found.value == pytest.approx(expected, abs=1e-12)
    assert found.pairs == len(both)


def test_an_editor_against_itself_differs_in_nothing(study):
    scores = Side.of(study, "simulated-even").scores
    found = differences(pair(scores, scores, "simulated-even", "simulated-even"), AnalysisRules("default", draws=200))
    assert {d.value for d in found} == {0.0}
    assert {d.change for d in found} == {"unclear"}


def test_what_only_one_of_them_answered_is_left_out_of_both(study):
    scores = Side.of(study, "simulated-even").scores
    gone = scores.values.copy()
    rows = np.flatnonzero((scores.edits["editor"] == "simulated-lightening").to_numpy())
    gone[rows[:10]] = 0
    from dataclasses import replace

    half = replace(scores, values=gone)
    found = differences(
        pair(scores, half, "simulated-even", "simulated-lightening"), AnalysisRules("default", draws=200)
    )
    assert next(d for d in found if d.measure == "rate.edit_success" and not d.group).pairs == 38


def test_other_portraits_and_unnamed_editors_are_refused(study, tmp_path):
    with pytest.raises(EvenEditError, match=r"several editors; name one: .*:simulated-even"):
        Side.of(study, None)
    with pytest.raises(EvenEditError, match="no editor 'x'"):
        Side.of(study, "x")
    other = open_study(tmp_path, sources={"kind": "drawn", "settings": FACES["settings"] | {"seed": 4}}, editors=[EVEN])
    other.run()
    with pytest.raises(EvenEditError, match="is another picture in the second study"):
        compare(Side.of(study, "simulated-even"), Side.of(other, None), tmp_path / "out")


def test_an_editor_with_a_clear_finding_stands_below_an_even_one(study, tmp_path):
    page = write_leaderboard([study.results()], tmp_path).read_text()
    assert "SIMULATED" in page
    rows = (tmp_path / "leaderboard.csv").read_text().splitlines()
    assert len(rows) == 3
    assert rows[0].startswith("rank,editor,study,worst_shift,") and ",rate_edit_success," in rows[0]
    assert rows[1].startswith("1,simulated-even,") and rows[2].startswith("2,simulated-lightening,")
    assert "Skin rated lighter, Black (clear to the judges)" in rows[2]


def test_editors_without_a_clear_finding_are_tied(study, tmp_path):
    from dataclasses import replace

    results = study.results()
    mine = [replace(e, editor="b") for e in results.estimates if e.editor == "simulated-even"]
    findings = [f for f in results.findings if f.editor == "simulated-even"]
    twin = replace(
        results,
        estimates=tuple(e for e in results.estimates if e.editor == "simulated-even") + tuple(mine),
        findings=(*findings, *(replace(f, editor="b") for f in findings)),
    )
    write_leaderboard([twin], tmp_path)
    rows = (tmp_path / "leaderboard.csv").read_text().splitlines()
    assert [row.split(",")[0] for row in rows[1:]] == ["1–2", "1–2"]


def test_many_differences_are_adjusted_and_the_page_says_how(study, tmp_path):
    page = compare(Side.of(study, "simulated-even"), Side.of(study, "simulated-lightening"), tmp_path)
    body = json.loads((tmp_path / "compare.json").read_text())
    tested = [d for d in body["differences"] if d["p"] is not None]
    assert all(d["p_adjusted"] >= d["p"] for d in tested)
    assert all((d["change"] == "unclear") == (d["p_adjusted"] >= 0.05) for d in tested)
    assert f"{len(tested)} differences are tested, so p is adjusted by Holm" in page.read_text()


def test_the_command_prints_its_page(evenedit, study, tmp_path):
    folder = study.file.folder
    from tests.support.studies import write_study

    write_study(folder, sources=FACES, editors=[EVEN, LIGHTENING], statistics={"draws": 500, "permutations": 99})
    done = evenedit("compare", f"{folder}:simulated-even", f"{folder}:simulated-lightening", "--out", tmp_path / "c")
    assert done.returncode == 0 and done.stdout.strip().endswith("compare.html"), done.stderr
    done = evenedit("compare", folder, folder, folder, "--out", tmp_path / "l")
    assert done.returncode == 0 and done.stdout.strip().endswith("leaderboard.html"), done.stderr
    wrong = evenedit("compare", folder, f"{folder}:simulated-even")
    assert wrong.returncode == 2 and "several editors" in wrong.stderr


def test_studies_that_asked_differently_are_not_compared(study, tmp_path):
    side = Side.of(study, "simulated-even")
    other = replace(side.scores, table=replace(side.scores.table, rubric=shipped_rubric("short-002")))
    with pytest.raises(EvenEditError, match="race_change is asked differently: 1–5 against yes-no"):
        compare(side, replace(side, scores=other), tmp_path)
    results = study.results()
    short = replace(results, rubric=tuple(shipped_rubric("short-002").to_tables()))
    with pytest.raises(EvenEditError, match="gender_change is asked differently: 1–5 against yes-no"):
        write_leaderboard([results, short], tmp_path)
