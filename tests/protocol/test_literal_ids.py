"""Code outside the protocol names no question and no rate: it asks the rubric that travels with the data."""

import ast
from pathlib import Path

import evenedit
from evenedit.protocol.rubric import SHIPPED, shipped_rubric

ROOT = Path(evenedit.__file__).parent
ALLOWED = (
    "protocol/",
    "ratings/authors.py",
    "study/from_authors.py",
    "judges/published_prompt.py",
    "judges/editscore.py",
)
"""What may name them: the protocol, and the formats and prompts of others."""
PAPER = {
    "report/contents.py",
    "report/figures/experiments.py",
    "report/figures/people.py",
    "report/figures/plots.py",
    "report/render/selection.py",
    "report/tables/agreement.py",
    "report/tables/appendix.py",
    "report/tables/experiments.py",
    "report/tables/main.py",
    "report/text/human_evaluation.py",
    "report/text/vlm_human.py",
    "results/materials.py",
    "stats/agreement/questions.py",
    "study/judge_replies.py",
}
"""The paper's own tables and figures: each is made where its questions are asked."""
LEFT = {
    "comparison/leaderboard.py",
    "instruments/as_raters.py",
    "judges/feature_prompts.py",
    "ratings/combine.py",
    "ratings/from_csv.py",
    "ratings/sources.py",
    "report/pages/judge_check.py",
    "simulation/editors.py",
    "simulation/judges.py",
    "stats/agreement/preference.py",
    "stats/disparity/mitigation.py",
    "stats/disparity/stereotype.py",
    "stats/findings/gaps.py",
    "stats/findings/mitigation.py",
    "stats/findings/representative_cases.py",
    "stats/robustness/multiverse.py",
    "survey/questions.py",
    "web/guide.py",
}
"""Files that still name a question or a rate. The list only shrinks."""
OTHER_MEANINGS = {"stereotype"}
"""Ids that are names of other things too: the experiment."""


def ids() -> set[str]:
    rubrics = [shipped_rubric(name) for name in SHIPPED]
    return {id for r in rubrics for id in (*r.columns, *r.rates)} - OTHER_MEANINGS


def named(path: Path, known: set[str]) -> set[str]:
    """The ids that a file has as whole strings, or after the kind of a measure: "rate.race_change"."""
    texts = [n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)]
    words = {text for text in texts if isinstance(text, str)}
    return {w for w in words if w in known or w.partition(".")[2] in known}


def test_only_the_listed_files_name_a_question_or_a_rate():
    known = ids()
    naming = {
        path.relative_to(ROOT).as_posix()
        for path in ROOT.rglob("*.py")
        if not path.relative_to(ROOT).as_posix().startswith(ALLOWED) and named(path, known)
    }
    assert not naming - PAPER - LEFT, "take these from the rubric instead of naming them"
    assert not LEFT - naming, "these name none any more: remove them from LEFT"
    assert not PAPER - naming, "these name none any more: remove them from PAPER"
