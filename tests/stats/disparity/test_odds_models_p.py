"""Odds, intervals and p of the logit models against statsmodels, scipy and formulas worked by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import minimize
from scipy.special import expit
from statsmodels.genmod.cov_struct import Independence
from statsmodels.genmod.families import Binomial
from statsmodels.genmod.generalized_estimating_equations import GEE
from statsmodels.genmod.generalized_linear_model import GLM

from evenedit.core.records import Kind
from evenedit.protocol import FACTORS
from evenedit.protocol.factors import cells
from evenedit.ratings.combine import combine
from evenedit.ratings.table import QUESTION_IDS, RatingTable, edit_columns
from evenedit.stats import AnalysisRules
from evenedit.stats.disparity.odds_models import Fit, ModelNotFittedError, count_cube, newton, odds_models
from evenedit.stats.engine.measures import answers
from evenedit.stats.engine.panel import by_face

WIDE = {f.name: f.codes for f in FACTORS}
DEFAULT = AnalysisRules.default()


def edits_of(prompts: int = 6, **only: tuple[str, ...]) -> pd.DataFrame:
    """One row per face of the paper's grid (or the named levels of it) and prompt."""
    faces = pd.DataFrame([c for c in cells() if all(c[f] in levels for f, levels in only.items())])
    faces["source_id"] = faces["race"] + faces["gender"] + faces["age"]
    return faces.merge(pd.DataFrame({"prompt_id": [f"p{k}" for k in range(prompts)]}), how="cross")


def fit_of(edits: pd.DataFrame, valid: np.ndarray, *ways: np.ndarray) -> Fit:
    axes = by_face(edits, FACTORS)
    factors = {f: levels for f, levels in axes.levels.items() if len(levels) > 1}
    return Fit(
        axes, factors, *count_cube(axes, np.asarray(valid, dtype=bool), [np.asarray(w, dtype=np.int64) for w in ways])
    )


def contrasts_of(edits: pd.DataFrame) -> tuple[np.ndarray, dict[str, slice]]:
    """Sum-to-zero columns of every factor that varies, and where each factor's stand."""
    columns, blocks = [], {}
    for factor, codes in WIDE.items():
        levels = [c for c in codes if (edits[factor] == c).any()]
        if len(levels) > 1:
            last = (edits[factor] == levels[-1]).to_numpy(float)
            start = len(columns)
            columns += [(edits[factor] == level).to_numpy(float) - last for level in levels[:-1]]
            blocks[factor] = slice(start, len(columns))
    return np.stack(columns, axis=1), blocks


def reference(edits: pd.DataFrame, valid: np.ndarray, *ways: np.ndarray):
    """statsmodels' GEE with working independence and Mancl and DeRouen's errors; a row per score and cut."""
    labels, blocks = contrasts_of(edits)
    prompt = pd.get_dummies(edits["prompt_id"][valid]).to_numpy(float)[:, 1:]
    cut = np.repeat(np.eye(len(ways)), valid.sum(), axis=0)
    design = np.column_stack([np.tile(labels[valid], (len(ways), 1)), cut, np.tile(prompt, (len(ways), 1))])
    groups = np.tile(pd.factorize(edits["source_id"])[0][valid], len(ways))
    order = np.argsort(groups, kind="stable")
    met = np.concatenate([np.asarray(way, float)[valid] for way in ways])
    gee = GEE(met[order], design[order], groups=groups[order], family=Binomial(), cov_struct=Independence())
    found = gee.fit(cov_type="bias_reduced")
    return found.params, found.cov_params(), blocks


def ordinal_reference(edits: pd.DataFrame, valid: np.ndarray, score: np.ndarray):
    """Proportional odds maximised directly, with slopes by differences and Mancl and DeRouen's errors face by face."""
    labels, blocks = contrasts_of(edits)
    design = np.column_stack([labels, pd.get_dummies(edits["prompt_id"]).to_numpy(float)[:, 1:]])[valid]
    category, face = score[valid] - 1, pd.factorize(edits["source_id"])[0][valid]
    rows, cuts = np.arange(len(category)), score.max() - 1

    def logs(params: np.ndarray) -> np.ndarray:
        above = 1 / (1 + np.exp(-params[:cuts] - (design @ params[cuts:])[:, None]))
        ends = np.column_stack([np.ones(len(rows)), above, np.zeros(len(rows))])
        return np.log(np.maximum(-np.diff(ends, axis=1), 1e-300))

    start = np.concatenate([np.linspace(1.5, -1.5, cuts), np.zeros(design.shape[1])])
    found = minimize(lambda x: -logs(x)[rows, category].mean(), start, method="BFGS", options={"gtol": 1e-9})
    slopes = np.stack([(logs(found.x + d) - logs(found.x - d)) / 2e-5 for d in 1e-5 * np.eye(len(start))], axis=2)
    information = np.einsum("nk,nki,nkj->nij", np.exp(logs(found.x)), slopes, slopes)
    bread = np.linalg.inv(information.sum(axis=0))
    freed = []
    for number in np.unique(face):
        mine = face == number
        pull = slopes[rows, category][mine].sum(axis=0)
        freed.append(np.linalg.solve(np.eye(len(start)) - information[mine].sum(axis=0) @ bread, pull))
    covariance = bread @ np.array(freed).T @ np.array(freed) @ bread
    return found.x[cuts:], covariance[cuts:, cuts:], blocks


@pytest.fixture(scope="module")
def case():
    """84 faces, 6 prompts, 5 % of the scores missing, one group higher."""
    rng = np.random.default_rng(3)
    edits = edits_of()
    face = pd.factorize(edits["source_id"], sort=True)[0]
    push = 0.8 * (edits["race"] == "Indian") + 0.3 * (edits["gender"] == "Female") + rng.normal(0, 0.7, 84)[face]
    met = rng.random(len(edits)) < expit(push - 0.5)
    valid = rng.random(len(edits)) > 0.05
    return fit_of(edits, valid, met), *reference(edits, valid, met)


def hotelling_p(effects: np.ndarray, covariance: np.ndarray, freedom: int) -> float:
    """T² = b' V⁻¹ b, and T² (v - q + 1) / (v q) is F with q and v - q + 1 degrees of freedom."""
    q = len(effects)
    t2 = effects @ np.linalg.solve(covariance, effects)
    return float(stats.f.sf(t2 * (freedom - q + 1) / (freedom * q), q, freedom - q + 1))


@pytest.mark.parametrize(("factor", "effects"), [("race", 6), ("gender", 1), ("age", 5)])
def test_p_is_hotellings_of_the_robust_covariance(case, factor, effects):
    fit, params, covariance, blocks = case
    block = blocks[factor]
    assert block.stop - block.start == effects
    assert fit.freedom == 84 - 12 - 1
    assert fit.p(factor) == pytest.approx(hotelling_p(params[block], covariance[block, block], 71), rel=1e-5)


def test_p_of_two_groups_is_that_of_students_t(case):
    fit, params, covariance, _ = case
    t = params[6] / np.sqrt(covariance[6, 6])
    assert fit.p("gender") == pytest.approx(2 * stats.t.sf(abs(t), 71), rel=1e-5)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_every_levels_odds_have_a_t_interval(case, confidence):
    fit, params, covariance, blocks = case
    for factor, block in blocks.items():
        size = block.stop - block.start
        for level in range(size + 1):
            weights = np.eye(size)[level] if level < size else -np.ones(size)
            value = weights @ params[block]
            half = stats.t.ppf((1 + confidence) / 2, 71) * np.sqrt(weights @ covariance[block, block] @ weights)
            expected = np.exp([value, value - half, value + half])
            assert fit.odds(factor, level, confidence) == pytest.approx(expected, rel=1e-5)


def test_cumulative_logits_are_the_maximum_of_the_proportional_odds_likelihood():
    rng = np.random.default_rng(4)
    edits = edits_of(prompts=4, race=("White", "Black", "Indian"))
    hidden = 0.9 * (edits["gender"] == "Female") + rng.logistic(size=len(edits))
    score = 1 + np.digitize(hidden, [-1.5, 0, 1, 2.5])
    valid = rng.random(len(edits)) > 0.1
    ways = [score > k for k in range(1, 5)]
    fit = fit_of(edits, valid, *ways)
    params, covariance, blocks = ordinal_reference(edits, valid, score)
    assert fit.coefficients == pytest.approx(params[:8], abs=1e-5)
    assert fit.covariance == pytest.approx(covariance[:8, :8], rel=1e-3, abs=1e-6)
    assert fit.p("age") == pytest.approx(
        hotelling_p(params[blocks["age"]], covariance[blocks["age"], blocks["age"]], 36 - 8 - 1), rel=1e-3
    )
    assert fit.method == "cumulative logits, prompts fixed, clustered by source"


def test_a_cut_that_no_score_crosses_says_nothing_and_is_left_out():
    rng = np.random.default_rng(6)
    edits = edits_of(prompts=3, race=("White", "Black"))
    valid = np.ones(len(edits), dtype=bool)
    low, high = rng.random(len(edits)) < 0.6, np.zeros(len(edits), dtype=bool)
    fit = fit_of(edits, valid, np.ones(len(edits)), low, high)
    assert fit.cuts == 1
    assert fit.coefficients == pytest.approx(reference(edits, valid, low)[0][:7], abs=1e-7)
    assert fit.method == "logit, prompts fixed, clustered by source"


def test_prompts_without_variation_are_left_out_and_counted_and_unasked_ones_are_not():
    rng = np.random.default_rng(7)
    edits = edits_of(prompts=6, race=("White", "Black"))
    prompt = edits["prompt_id"]
    met = (rng.random(len(edits)) < 0.4) & (prompt != "p1") | (prompt == "p2")
    valid = (prompt != "p3").to_numpy()
    fit = fit_of(edits, valid, met)
    kept = valid & ~prompt.isin(["p1", "p2"]).to_numpy()
    params, covariance, _ = reference(edits[kept], np.ones(kept.sum(), dtype=bool), met[kept])
    assert (fit.prompts, fit.left_out) == (3, 2)
    assert fit.method == "logit, prompts fixed, clustered by source, 2 prompts without variation left out"
    assert fit.coefficients == pytest.approx(params[:7], abs=1e-7)
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(np.sqrt(np.diag(covariance))[:7], rel=1e-5)


def test_a_prompt_with_a_single_score_is_left_out_and_counted():
    edits, met = two_groups((9, 3), (12, 12))
    more = pd.concat([edits, edits.iloc[[0]].assign(prompt_id="p1")], ignore_index=True)
    fit = fit_of(more, np.ones(25), np.append(met, True))
    assert (fit.prompts, fit.left_out) == (1, 1)
    assert fit.coefficients == pytest.approx([np.log(9) / 2], abs=1e-9)  # odds of 3 against 1/3


def test_a_face_without_a_valid_score_is_no_cluster():
    rng = np.random.default_rng(8)
    edits = edits_of(prompts=4, race=("White", "Black"))
    met = rng.random(len(edits)) < 0.5
    valid = ~edits["source_id"].isin(["WhiteMale20s", "BlackFemale30s"]).to_numpy()
    fit = fit_of(edits, valid, met)
    params, covariance, _ = reference(edits, valid, met)
    assert fit.freedom == 22 - 7 - 1
    assert fit.coefficients == pytest.approx(params[:7], abs=1e-7)
    assert fit.covariance == pytest.approx(covariance[:7, :7], rel=1e-5, abs=1e-9)


# -- two groups, one prompt, one score a face: everything in closed form -----------------------------------------


def two_groups(hits: tuple[int, int], sizes: tuple[int, int]) -> tuple[pd.DataFrame, np.ndarray]:
    rows = [
        {"source_id": f"{race}{k:02}", "prompt_id": "p0", "race": race, "gender": "Male", "age": "20s"}
        for race, size in zip(("White", "Black"), sizes, strict=True)
        for k in range(size)
    ]
    met = np.concatenate([np.arange(size) < hit for hit, size in zip(hits, sizes, strict=True)])
    return pd.DataFrame(rows), met


def by_hand(hits: tuple[int, int], sizes: tuple[int, int]) -> tuple[float, float]:
    """Half the log odds ratio and its standard error.

    A group of n faces with share p has log odds of variance 1 / (n p q). Each face weighs 1/n in its group's fit, so
    Mancl and DeRouen divide its residual by 1 - 1/n.
    """
    share = np.array(hits) / np.array(sizes)
    logit = np.log(share / (1 - share))
    variance = 1 / (np.array(sizes) * share * (1 - share)) * (np.array(sizes) / (np.array(sizes) - 1)) ** 2
    return float(logit[0] - logit[1]) / 2, float(np.sqrt(variance.sum())) / 2


@pytest.mark.parametrize(("hits", "sizes"), [((9, 3), (12, 12)), ((5, 4), (8, 20)), ((1, 1), (2, 2))])
def test_two_groups_agree_with_the_formula_worked_by_hand(hits, sizes):
    edits, met = two_groups(hits, sizes)
    fit = fit_of(edits, np.ones(len(edits)), met)
    effect, error = by_hand(hits, sizes)
    assert fit.freedom == sum(sizes) - 2
    assert fit.coefficients == pytest.approx([effect], abs=1e-9)
    assert fit.covariance[0, 0] == pytest.approx(error**2, rel=1e-9)
    assert fit.p("race") == pytest.approx(2 * stats.t.sf(abs(effect) / error, sum(sizes) - 2), rel=1e-9)
    half = stats.t.ppf(0.975, sum(sizes) - 2) * error
    assert fit.odds("race", 1, 0.95) == pytest.approx(np.exp([-effect, -effect - half, -effect + half]), rel=1e-9)


def test_scores_of_one_face_and_prompt_are_counted_in_one_cell():
    edits = pd.DataFrame(
        [
            {"source_id": s, "prompt_id": p, "race": "White", "gender": "Male", "age": "20s"}
            for s, p in (("a", "x"), ("a", "x"), ("a", "y"), ("b", "x"), ("b", "y"), ("b", "y"), ("b", "y"))
        ]
    )
    valid = np.array([1, 1, 1, 0, 1, 1, 0], dtype=bool)
    one, two = np.array([1, 0, 1, 1, 1, 1, 1]), np.array([0, 0, 1, 1, 0, 1, 1])
    met, count = count_cube(by_face(edits, FACTORS), valid, [one, two])
    assert met.tolist() == [[[1, 0], [1, 1]], [[0, 0], [2, 1]]]
    assert count.tolist() == [[[2, 2], [1, 1]], [[0, 0], [2, 2]]]


def test_the_last_face_may_have_no_edit_of_the_last_prompt():
    pairs = [("a", "x"), ("a", "y"), ("a", "z"), ("b", "x"), ("c", "x"), ("c", "y")]
    edits = pd.DataFrame([{"source_id": s, "prompt_id": p, "race": "", "gender": "", "age": ""} for s, p in pairs])
    met, count = count_cube(by_face(edits, FACTORS), np.ones(6, dtype=bool), [np.array([1, 0, 1, 1, 0, 1])])
    assert met[..., 0].tolist() == [[1, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert count[..., 0].tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]


# -- what has no fit -----------------------------------------------------------------------------------------------


def test_a_group_of_one_face_is_named():
    edits, met = two_groups((1, 4), (1, 8))
    with pytest.raises(ModelNotFittedError, match=r"^White has fewer than two faces$"):
        fit_of(edits, np.ones(9), met)


def test_a_group_on_one_side_is_named():
    edits, met = two_groups((2, 4), (2, 8))
    with pytest.raises(
        ModelNotFittedError, match=r"^separation: every score of White is on one side of the threshold$"
    ):
        fit_of(edits, np.ones(10), met)
    with pytest.raises(ModelNotFittedError, match=r"^every score is on one side of the threshold$"):
        fit_of(edits, np.ones(10), np.ones(10))


def test_a_group_on_one_side_of_every_cut_is_named():
    edits, met = two_groups((2, 4), (2, 8))
    with pytest.raises(ModelNotFittedError, match=r"^separation: every score of White"):
        fit_of(edits, np.ones(10), met, met & (np.arange(10) != 5))


def test_labels_that_cannot_be_told_apart_say_so():
    edits, met = crossed("WM2 WM3 WM2 BF2 BF3 BF3")
    with pytest.raises(
        ModelNotFittedError, match=r"^the labels of the faces cannot be told apart: some combination stands for ano"
    ):
        fit_of(edits, np.ones(len(edits)), met)


def crossed(faces: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Faces by race, gender and age, two letters and a digit each; each is met on one of its two prompts."""
    names = {"W": "White", "B": "Black", "M": "Male", "F": "Female", "2": "20s", "3": "30s"}
    rows = [
        {"source_id": f"s{at}", "prompt_id": p, **{f: names[c] for f, c in zip(WIDE, code, strict=True)}}
        for at, code in enumerate(faces.split())
        for p in ("x", "y")
    ]
    return pd.DataFrame(rows), np.array([at % 2 for at in range(len(rows))]) ^ np.array(
        [(at // 2) % 3 == 0 for at in range(len(rows))]
    )


def test_as_many_faces_as_effects_and_intercept_are_too_few():
    edits, met = crossed("WM2 WF3 BM3 BF2")
    with pytest.raises(ModelNotFittedError, match=r"^4 faces are too few for 3 effects of labels$"):
        fit_of(edits, np.ones(len(edits)), met)
    edits, _ = crossed("WM2 WF3 BM3 BF2 WM3")
    met = np.array([1, 0, 1, 1, 0, 1, 0, 0, 1, 0])  # of two scores a face: 1, 2, 1, 0, 1
    fit = fit_of(edits, np.ones(len(edits)), met)
    assert fit.freedom == 1
    assert abs(fit.coefficients[0]) > 0.1
    t = fit.coefficients[0] / np.sqrt(fit.covariance[0, 0])
    assert fit.p("race") == pytest.approx(2 * stats.t.sf(abs(t), 1), rel=1e-9)


@pytest.mark.parametrize("swapped", [False, True])
def test_odds_without_a_limit_are_found_by_the_newton_steps(swapped):
    design = np.array([[1.0, 0.0], [1.0, 1.0]])
    hits = np.array([5.0, 10.0])
    with pytest.raises(ModelNotFittedError, match=r"^separation: the odds of some group or prompt have no limit$"):
        newton(design, 10 - hits if swapped else hits, np.array([10.0, 10.0]))
    with pytest.raises(ModelNotFittedError, match=r"^separation: the odds of some group or prompt have no limit$"):
        newton(np.ones((2, 2)), np.array([5.0, 4.0]), np.array([10.0, 10.0]))  # two columns alike


def test_newton_agrees_with_statsmodels_on_counts():
    rng = np.random.default_rng(9)
    design = np.column_stack([np.ones(30), rng.normal(size=(30, 2))])
    sizes = rng.integers(1, 30, 30).astype(float)
    hits = rng.binomial(sizes.astype(int), expit(design @ [-1.0, 0.8, -0.4])).astype(float)
    params, bread = newton(design, hits, sizes)
    glm = GLM(np.column_stack([hits, sizes - hits]), design, family=Binomial()).fit(tol=1e-14)
    assert params == pytest.approx(glm.params, abs=1e-8)
    assert bread == pytest.approx(glm.cov_params(), rel=1e-6)


def test_odds_of_a_hundred_thousand_to_one_still_have_a_fit():
    # log(99 999) = 11.51, within the 12 beyond which a fit has run away; log(999 999) = 13.8 is not
    assert newton(np.ones((1, 1)), np.array([99_999.0]), np.array([100_000.0]))[0] == pytest.approx([np.log(99_999)])
    with pytest.raises(ModelNotFittedError, match="no limit"):
        newton(np.ones((1, 1)), np.array([999_999.0]), np.array([1_000_000.0]))


# -- the records of a study ------------------------------------------------------------------------------------------


def study(**changes: str) -> list[dict[str, object]]:
    """White 9 of 12 and Black 3 of 12 faces lighter (skin_tone 4), one prompt."""
    edits, met = two_groups((9, 3), (12, 12))
    rows = []
    for row, lighter in zip(edits.to_dict("records"), met, strict=True):
        same = {"experiment": "diagnosis", "condition": "baseline", "editor": "e", "seed": 1, "outcome": "edited"}
        rows.append(same | row | {"prompt_id": "O-01", "skin": 4 if lighter else 3} | changes)
    return rows


def models_of(rows: list[dict[str, object]], rules: AnalysisRules = DEFAULT):
    frame = pd.DataFrame(rows)
    frame["request_id"] = [str(i) for i in range(len(frame))]
    values = np.zeros((1, len(frame), len(QUESTION_IDS)), dtype=np.int8)
    values[0, :, QUESTION_IDS.index("skin_tone")] = frame["skin"]
    status = np.zeros(values.shape[:2], dtype=np.int8)
    table = RatingTable(frame[list(edit_columns(FACTORS))], ("j",), (Kind.VLM,), values, status)
    scores = combine(table, rules.ensemble, rules.missing)
    return list(odds_models(scores, answers(scores, rules), rules))


def test_a_study_gets_one_model_for_each_rate_and_axis_that_was_answered():
    found = models_of(study())
    assert [(m.measure, m.factor) for m in found] == [
        ("rate.skin_lighter", "race"),
        ("rate.skin_darker", "race"),
        ("mean.skin_tone", "race"),
    ]
    lighter, darker, mean = found
    for model in found:
        assert (model.experiment, model.condition, model.editor) == ("diagnosis", "baseline", "e")
        assert (model.faces, model.n) == (24, 24)
    effect, error = by_hand((9, 3), (12, 12))
    half = stats.t.ppf(0.975, 22) * error
    for model in (lighter, mean):  # every score is 3 or 4, so one cut alone tells
        assert list(model.odds) == ["White", "Black"]
        for level, sign in (("White", 1), ("Black", -1)):
            ratio = model.odds[level]
            expected = np.exp([sign * effect, sign * effect - half, sign * effect + half])
            assert (ratio.value, ratio.low, ratio.high) == pytest.approx(expected, rel=1e-9)
        assert model.p == pytest.approx(2 * stats.t.sf(abs(effect) / error, 22), rel=1e-9)
        assert model.method == "logit, prompts fixed, clustered by source"
    assert (darker.odds, darker.p) == ({}, None)
    assert darker.method == "none: every score is on one side of the threshold"


def test_models_are_of_the_diagnosis_alone_editor_by_editor():
    others = [*study(experiment="mitigation", condition="feature"), *study(condition="other")]
    second = [row | {"editor": "d", "skin": 7 - int(str(row["skin"]))} for row in study()]
    found = models_of([*others, *study(), *second])
    assert [m.editor for m in found] == ["d"] * 3 + ["e"] * 3
    by_editor = {m.editor: m for m in found if m.measure == "rate.skin_lighter"}
    assert by_editor["e"] == models_of(study())[0]
    assert by_editor["d"].odds["White"].value == pytest.approx(1 / by_editor["e"].odds["White"].value)


def test_a_missing_score_is_neither_met_nor_counted():
    rows = study()
    rows[0]["skin"], rows[23]["skin"] = 0, 0  # of White 8 of 11 are left, of Black 3 of 11
    lighter = models_of(rows)[0]
    effect, error = by_hand((8, 3), (11, 11))
    assert (lighter.faces, lighter.n) == (22, 22)
    assert lighter.odds["White"].value == pytest.approx(np.exp(effect))
    assert lighter.p == pytest.approx(2 * stats.t.sf(abs(effect) / error, 20))


def test_the_mean_of_an_axis_uses_every_cut_of_the_scale():
    rng = np.random.default_rng(10)
    rows = [row | {"skin": int(rng.integers(1, 6)), "prompt_id": p} for row, p in product(study(), ("O-01", "O-02"))]
    mean = models_of(rows)[-1]
    edits, score = pd.DataFrame(rows), np.array([row["skin"] for row in rows])
    params, covariance, _ = ordinal_reference(edits, np.ones(len(rows), dtype=bool), score)
    assert mean.measure == "mean.skin_tone"
    assert mean.method.startswith("cumulative logits")
    assert mean.odds["White"].value == pytest.approx(np.exp(params[0]), rel=1e-5)
    assert mean.p == pytest.approx(hotelling_p(params[:1], covariance[:1, :1], 22), rel=1e-3)


def test_intervals_have_the_level_the_rules_ask_for():
    ratio = models_of(study(), replace(DEFAULT, confidence=0.8))[0].odds["White"]
    effect, error = by_hand((9, 3), (12, 12))
    half = stats.t.ppf(0.9, 22) * error
    assert (ratio.low, ratio.high) == pytest.approx(np.exp([effect - half, effect + half]), rel=1e-9)


def test_faces_of_one_group_have_no_model():
    assert models_of([row | {"race": "White"} for row in study()]) == []
