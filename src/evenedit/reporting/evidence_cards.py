"""Blind evidence cards: one printed page per case, without editor, labels or scores, to discuss with outsiders."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Experiment, is_simulated
from evenedit.ratings.combine import combine, priority
from evenedit.report.render.html import put, render, thumbnail
from evenedit.report.render.table import short_list
from evenedit.study.analysis import analysis_rules
from evenedit.study.context import StudyContext

SIZE = 720
"""Longest side of a picture on a card, in pixels."""
ORDER = ("high", "medium", "low")
"""Review priorities, the most urgent first."""


def write_cards(study: StudyContext, out: Path, count: int) -> tuple[Path, Path]:
    """Write cards.html and key.csv, which names the edit on each card; return both paths.

    The cases of highest review priority are chosen and shuffled by the study's seed, so that the order reveals
    neither editor nor group.
    """
    rules = analysis_rules(study.file)
    scores = combine(study.table(), rules.ensemble, rules.missing)
    edits = scores.edits
    sources, edits_by_id = study.store.sources(), study.store.edits()
    pictured = {ident for ident, edit in edits_by_id.items() if edit.image is not None}
    chosen = edits["request_id"].isin(pictured) & (edits["experiment"] == Experiment.DIAGNOSIS)
    rows = np.flatnonzero((chosen & (edits["condition"] == ConditionKind.BASELINE)).to_numpy())
    if not len(rows):
        raise EvenEditError(f"no edit of the diagnosis has a picture yet. Try: evenedit run {study.file.folder}")
    rng = np.random.default_rng(study.file.sections.study.seed)
    rank = np.array([ORDER.index(p) for p in priority(scores, study.file.rates)[rows]])
    picked = rows[np.lexsort((rng.random(len(rows)), rank))][:count]
    rng.shuffle(picked)
    simulated = sorted(n for n in {*edits["editor"], *scores.table.raters} if is_simulated(n))
    seen: dict[str, str] = {}
    cards, key = [], []
    for number, row in enumerate(picked, 1):
        case = edits.iloc[int(row)]
        image = edits_by_id[case["request_id"]].image
        assert image is not None
        pictures = [study.store.images.open(sha) for sha in (sources[case["source_id"]].image, image)]
        cards.append(
            {
                "number": number,
                "instruction": study.file.prompt(case["prompt_id"]).text,
                "pictures": [thumbnail(picture, seen, SIZE) for picture in pictures],
            }
        )
        key.append({"card": number, **{c: case[c] for c in ("request_id", "editor", "source_id", "prompt_id", "seed")}})
    page = render("cards.html", cards=cards, simulated=short_list(simulated))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(key[0]))
    writer.writeheader()
    writer.writerows(key)
    put(out / "key.csv", buffer.getvalue().encode())
    put(out / "cards.html", page.encode())
    return out / "cards.html", out / "key.csv"
