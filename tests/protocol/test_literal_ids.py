"""Code outside the protocol names no question and no rate: it asks the rubric that travels with the data."""

import ast
from dataclasses import asdict
from pathlib import Path

import evenedit
from evenedit.protocol.rubric import ROLES, SHIPPED, shipped_rubric

ROOT = Path(evenedit.__file__).parent
ALLOWED = (
    "protocol/",
    "ratings/authors.py",
    "judges/published_prompt.py",
    "judges/editscore.py",
)
"""What may name them: the protocol, and the formats and prompts of others."""
PAPER = {
    "report/figures/experiments.py",
    "report/figures/people.py",
    "report/figures/plots.py",
    "report/tables/agreement.py",
    "report/tables/main.py",
    "report/text/human_evaluation.py",
    "report/text/vlm_human.py",
}
"""The paper's own tables and figures, and the headings of its evaluation plan: each is made where its questions are."""
OTHER_MEANINGS = {
    "judges/feature_prompts.py": {"skin_tone"},
    "report/contents.py": {"preference"},
    "report/tables/experiments.py": {"preference"},
    "web/guide.py": {"older", "younger"},
}
"""Ids that name something else in a file: a part of a description, a table, a picture."""
EVERYWHERE = {"stereotype"}
"""Ids that are names of other things in many places: the experiment."""


def ids() -> set[str]:
    rubrics = [shipped_rubric(name) for name in SHIPPED]
    return {id for r in rubrics for id in (*r.columns, *r.rates)} - EVERYWHERE


def named(path: Path, known: set[str]) -> set[str]:
    """The ids that a file has as whole strings, or after the kind of a measure: "rate.race_change"."""
    texts = [n.value for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Constant)]
    words = {text for text in texts if isinstance(text, str)}
    return {w for w in words if w in known or w.partition(".")[2] in known}


def test_only_the_listed_files_name_a_question_or_a_rate():
    known = ids()
    paths = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.py")}
    naming = {name: named(path, known) for name, path in paths.items() if not name.startswith(ALLOWED)}
    naming = {name: words for name, words in naming.items() if words}
    elsewhere = {name: words for name, words in naming.items() if name not in PAPER}
    assert elsewhere == OTHER_MEANINGS, "take these from ROLES or the rubric instead of naming them"
    assert not PAPER - set(naming), "these name none any more: remove them from PAPER"


def test_every_role_is_a_question_or_a_rate_of_the_shipped_default():
    rubric = shipped_rubric("default")
    assert not set(asdict(ROLES).values()) - {*rubric.columns, *rubric.rates}
