"""People's ratings in, and the reference values of the real ones."""

import json
import re
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenedit.api.load_results import load_results
from evenedit.core.errors import EvenEditError
from evenedit.core.records import Kind
from evenedit.ratings.human_csv import read_with_people
from evenedit.ratings.table import QUESTION_IDS
from evenedit.stats.agreement import human_consensus as people
from evenedit.stats.engine import ranks
from tests.support.commands import Command
from tests.support.paths import SHARED

HEADER = (
    "experiment,condition,editor,source_id,race,gender,age,prompt_id,rater,"
    "edit_success,skin_tone,race_drift,gender_drift,age_drift"
)
FACE = "White_Male_20s,White,Male,20s"
SCORES = HEADER.replace("rater", "judge,status")


def write(path: Path, header: str, *rows: str) -> Path:
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_ratings_join_the_judged_edits(tmp_path: Path):
    scores = write(tmp_path / "scores.csv", SCORES + ",seed", f"diagnosis,baseline,e,{FACE},O-01,j,scored,5,3,1,1,3,42")
    ratings = write(
        tmp_path / "ratings.csv", HEADER + ",duration_ms,shown_first",
        f"diagnosis,baseline,e,{FACE},B01,zoe,4,3,1,1,3,900,1",
        f"mitigation,baseline,e,{FACE},B01,ann,3,3,1,1,,900,1",  # a baseline is one and the same edit
        f"mitigation,feature,e,{FACE},B01,ann,2,3,1,1,3,900,0",
    )  # fmt: skip
    table = read_with_people([scores], [ratings])
    assert (table.raters, table.kinds) == (("j", "zoe", "ann"), (Kind.VLM, Kind.HUMAN, Kind.HUMAN))
    assert table.edits[["experiment", "condition", "prompt_id"]].to_numpy().tolist() == [
        ["diagnosis", "baseline", "O-01"], ["mitigation", "feature", "O-01"],
    ]  # fmt: skip
    assert table.edits["seed"].tolist() == [42, 0]
    assert table.values[:, 0, QUESTION_IDS.index("edit_success")].tolist() == [5, 4, 3]
    assert table.values[2, 0, QUESTION_IDS.index("age_drift")] == 0


def test_ratings_alone_are_a_table(tmp_path: Path):
    ratings = write(tmp_path / "r.csv", HEADER, f"diagnosis,baseline,e,{FACE},V-05,ann,4,3,1,1,5")
    table = read_with_people([], [ratings])
    assert table.kinds == (Kind.HUMAN,)
    assert table.values[0, 0, QUESTION_IDS.index("aging_accuracy")] == 5  # V-05 asks for an age


def test_verdicts_of_people_find_their_edit(tmp_path: Path):
    judged = "experiment,condition,editor,source_id,prompt_id,judge,status,verdict"
    scores = write(tmp_path / "v.csv", judged, "stereotype,baseline,e,a+b,W-01,j,scored,UNCLEAR")
    header = "experiment,condition,editor,prompt_id,rater,verdict"
    ratings = write(tmp_path / "r.csv", header, "stereotype,baseline,e,W-01,ann,STEREOTYPE_FOLLOWED")
    table = read_with_people([scores], [ratings])
    assert (len(table.edits), table.edits["source_id"][0]) == (1, "a+b")
    assert table.values[:, 0, QUESTION_IDS.index("stereotype")].tolist() == [3, 1]


@pytest.mark.parametrize(
    ("header", "row", "said"),
    [
        (HEADER.replace("skin_tone", "skintone"), "4,3,1,1,3", "a column 'skintone', which is not known; did you"),
        (HEADER.replace(",gender_drift", ""), "4,3,1,3", "lacks the columns: gender_drift"),
        (HEADER, "4,6,1,1,3", "line 2: skin_tone is '6'; expected a whole number from 1 to 5"),
        (HEADER, "4,2.5,1,1,3", "skin_tone is '2.5'"),
        (HEADER.replace("rater", "judge"), "4,3,1,1,3", "has a column 'judge' but no 'rater'"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(tmp_path: Path, header: str, row: str, said: str):
    with pytest.raises(EvenEditError, match=said):
        read_with_people([], [write(tmp_path / "r.csv", header, f"diagnosis,baseline,e,{FACE},O-01,ann,{row}")])


def test_prompt_ids_of_two_forms_are_refused_with_both_readings(tmp_path: Path):
    rows = [f"diagnosis,baseline,e,{FACE},{prompt},ann,4,3,1,1,3" for prompt in ("O-04", "O05")]
    with pytest.raises(EvenEditError, match="several forms") as refused:
        read_with_people([], [write(tmp_path / "r.csv", HEADER, *rows)])
    assert "the paper's" in str(refused.value) and "the rules'" in str(refused.value)


def test_a_rating_twice_and_a_case_of_several_seeds_are_refused(tmp_path: Path):
    row = f"diagnosis,baseline,e,{FACE},O-01,ann,4,3,1,1,3"
    with pytest.raises(EvenEditError, match="the same edit and judge"):
        read_with_people([], [write(tmp_path / "twice.csv", HEADER, row, row)])
    judged = [f"diagnosis,baseline,e,{FACE},O-01,j,scored,5,3,1,1,3,{seed}" for seed in (1, 2)]
    scores = write(tmp_path / "scores.csv", SCORES + ",seed", *judged)
    with pytest.raises(EvenEditError, match="several edits of this case with different seeds; add a column 'seed'"):
        read_with_people([scores], [write(tmp_path / "r.csv", HEADER, row)])
    told = read_with_people([scores], [write(tmp_path / "s.csv", HEADER + ",seed", row + ",2")])
    assert told.values[1, :, 0].tolist() == [0, 4]


def test_analyze_needs_something_to_read(tmp_path: Path, evenedit: Command):
    nothing = evenedit("analyze", "--out", tmp_path)
    assert nothing.returncode == 2 and "no file to read" in nothing.stderr and "Traceback" not in nothing.stderr


# -- the real ratings ------------------------------------------------------------------------------------

REAL = SHARED / "human_ratings"
real = pytest.mark.skipif(not REAL.is_dir(), reason="the real ratings are not beside the repository")


CONDITIONS = {"edited": "baseline", "preserved": "feature"}
COHORTS = {"complete3": "complete", "all6": "all"}
BETWEEN = {
    "fleiss": "fleiss_kappa",
    "kripp_nominal": "krippendorff_alpha_nominal",
    "kripp_ordinal": "krippendorff_alpha_ordinal",
    "kripp_interval": "krippendorff_alpha_interval",
    "icc2_1": "icc2_1",
    "icc2_k": "icc2_k",
}
CENTRES = {
    "mean_halfup": "",
    "mean": "",
    "median_halfup": "_median",
    "median": "_median",
    "majority_tie_median": "_majority",
}
PAIRED = {
    "mean_delta": "mean_delta",
    "wilcox.T_min": "wilcoxon_T",
    "wilcox.p_nocc": "wilcoxon_T.p",
    "rank_biserial": "rank_biserial",
}
MOVED = re.compile("labels permuted over faces|signs of faces flipped")
GROUPED = {
    "H": "kruskal_wallis_H",
    "p": "kruskal_wallis_H.p",
    "epsilon2": "epsilon_squared",
    "U_white": "mann_whitney_U",
    "p_exact_conditional": "mann_whitney_U.p",
    "cliffs_delta": "cliffs_delta",
}


def place(key: str) -> tuple[str, str, str, str] | None:
    """Return statistic, axis, condition and raters of a reference value; `.p` after the statistic is its p.

    None where results.json has another convention.
    """
    first, *rest = key.split(".")
    match first:
        case "wilcoxon":
            name = PAIRED.get(".".join(rest[3:]))
            return (name, rest[2], "feature", COHORTS[rest[1]]) if name else None
        case "kruskal" | "mannwhitney":
            name = GROUPED.get(rest[3])
            return (name, "skin_tone", CONDITIONS[rest[2]], COHORTS[rest[1]]) if name else None
        case "spearman":
            cohort, version, centre, axis, what = rest
            tail = ".p" if what == "p_t" else ""
            return (f"spearman{CENTRES[centre]}{tail}", axis, CONDITIONS[version], COHORTS[cohort])
        case "wkappa_linear" | "wkappa_quadratic":
            cohort, version, centre, axis = rest
            return (
                f"{first.replace('wkappa', 'weighted_kappa')}{CENTRES[centre]}",
                axis,
                CONDITIONS[version],
                COHORTS[cohort],
            )
    return (BETWEEN[first], rest[2], CONDITIONS[rest[1]], COHORTS[rest[0]])


@real
@pytest.mark.parametrize("preset", ["published", "default"])
def test_every_reference_value_that_is_told_is_reproduced(tmp_path: Path, evenedit: Command, preset: str):
    """202 of the 278 values from the command line; the other 76 are other conventions, tested below.

    By default p of rank tests over items moves faces; the reference takes items as independent, as published.
    """
    ratings, judges = REAL / "ratings.csv", REAL / "judge_scores.csv"
    done = evenedit("analyze", judges, "--ratings", ratings, "--preset", preset, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    rows = [asdict(row) for row in load_results(tmp_path / "out").agreement]
    pooled = {
        (r["statistic"], r["axis"], r["condition"], r["raters"]): r
        for r in rows
        if r["editor"] is None and r["group"] in ({}, {"race": "*"}, {"race": "White"})
        and (r["statistic"] in GROUPED.values() or not r["group"])
    }  # fmt: skip
    reference = json.loads((REAL / "reference.json").read_text())["values"]
    assert len(reference) == 278
    places = {key: place(key) for key in reference}
    assert sum(found is not None for found in places.values()) == 202
    moved: list[str] = []
    for key, where in places.items():
        if where is None or (where[0] == "icc2_1" and preset == "default"):  # of the published preset only
            continue
        statistic, _, p = where[0].partition(".")
        row = pooled[(statistic, *where[1:])]
        if p and preset == "default" and MOVED.search(row["method"]):
            moved.append(key)
            continue
        value = row["p"] if p else row["value"]
        assert value == (None if reference[key] is None else pytest.approx(reference[key], abs=1e-6)), key
        assert value is not None or "undefined" in row["method"]
    assert all(".p" in key for key in moved) and bool(moved) is (preset == "default"), moved
    assert (tmp_path / "out" / "vlm_human_agreement.json").exists()


@real
def test_the_other_conventions_of_the_reference_are_reproduced():
    """R's continuity correction, Pratt's and split zeros, exact p, degrees of freedom, V, z, pairs that differ."""
    reference = json.loads((REAL / "reference.json").read_text())["values"]
    frame = pd.read_csv(REAL / "ratings.csv")
    race = frame.drop_duplicates("item_id").set_index("item_id").sort_index()["race"].to_numpy()

    def means(version: str, axis: str, cohort: str) -> np.ndarray:
        wide = frame[frame["version"] == version].pivot(index="item_id", columns="rater", values=axis).sort_index()
        ratings = wide.fillna(0).to_numpy().astype(int)
        total, count = people.totals(people.balanced_ratings(ratings) if cohort == "complete3" else ratings)
        return total * (60 // count)

    left = [key for key in reference if place(key) is None]
    assert len(left) == 278 - 202
    for key in left:
        first, *rest = key.split(".")
        if first == "wilcoxon":
            difference = means("preserved", rest[2], rest[1]) - means("edited", rest[2], rest[1])
            what, how = rest[3], rest[-1]
            zeros = {"wilcox": "drop", "pratt": "pratt", "zsplit": "split"}.get(what, "drop")
            test = ranks.wilcoxon(difference, zeros=zeros, exact=how == "p_exact_conditional", continuity=how == "p_cc")
            assert test
            value = {"n_nonzero": test.nonzero, "V_plus": test.v_plus, "z_abs": test.z}.get(how, test.p)
        else:
            skin = means("edited", "skin_tone", rest[1])
            if first == "kruskal":
                found = ranks.kruskal_wallis(skin, race)
                assert found
                value = found.df
            else:
                white, others = skin[race == "White"], skin[race != "White"]
                both = ranks.mann_whitney(white, others, exact=False, continuity=rest[3] == "p_asym_cc")
                assert both
                value = both.p
        assert value == pytest.approx(reference[key], abs=1e-6), key


def test_the_authors_own_columns_are_understood(tmp_path: Path):
    labels = "model,prompt_id,race,gender,age,version"
    axes = "edit_success,skin_tone,race_drift,gender_drift,age_drift"
    rows = ["flux,B01,Black,Male,20s,edited,4,3,1,1,3", "flux,B01,Black,Male,20s,preserved,5,3,1,1,3"]
    judged = write(tmp_path / "judge.csv", f"{labels},{axes}", *rows)
    people = write(tmp_path / "people.csv", f"{labels},rater,{axes}", "flux,B01,Black,Male,20s,edited,R1,2,3,1,1,3")
    told = read_with_people([judged], [people])
    assert told.edits[["experiment", "condition", "editor"]].to_numpy().tolist() == [
        ["diagnosis", "baseline", "flux"],
        ["mitigation", "feature", "flux"],
    ]
    assert told.values[:, :, 0].tolist() == [[4, 5], [2, 0]]
    wrong = write(tmp_path / "wrong.csv", f"{labels},{axes}", rows[0].replace("edited", "redone"))
    with pytest.raises(EvenEditError, match="version 'redone' is not known; the authors' are: edited, preserved"):
        read_with_people([wrong], [])
