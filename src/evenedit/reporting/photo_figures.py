"""Photo figures (5, 7, 12 and 13 of the paper): a stated rule chooses every case, never a person."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from evenedit.cases import grids
from evenedit.cases.labels import in_a_sentence, labels_in_words
from evenedit.cases.thumbnails import WIDTHS, Thumbnails, report_width
from evenedit.core.records import ConditionKind, Edit, Experiment, Outcome, Source
from evenedit.protocol import Factor, PromptSet, Rubric
from evenedit.protocol.drift import drift
from evenedit.protocol.measures import Measure
from evenedit.protocol.rubric import STEREOTYPE_QUESTIONS
from evenedit.ratings.table import Scores
from evenedit.report.figures.photo_figure import PhotoFigure, photo_figure
from evenedit.report.render.contact_sheet import Cell, SheetRow, collage
from evenedit.report.render.scales import short_scales
from evenedit.report.render.words import texts_of
from evenedit.reporting.examples import called, in_few_words
from evenedit.results.words import count, listed
from evenedit.stats.agreement.preference import change
from evenedit.stats.disparity.mitigation import pairs
from evenedit.storage.store import Store

SIDE = 224
"""Pixels of a picture on a contact sheet."""
TINY = 64
"""Pixels of a picture on the mosaic."""
MOSAIC, ACROSS = 480, 24
"""The most outputs on the mosaic, and the most side by side."""
SEED = 42
PROMPTS = 6
"""The most prompts of figure 13, as in the paper."""
MEASURED = "measured share of the picture that changed"
CHANGED = Measure.mean("changed_share")
READINGS = {Measure.mean("skin_delta_L_raw"): "skin L* {:+.1f}", CHANGED: "{:.0%} changed"}
"""How a picture's caption prints a measurement, where nothing is rated."""
READINGS_KEY = (
    "Under each picture its measurements: skin's lightness as displayed (change of L*), changed share of the picture."
)
NO_BREAK = "\N{NO-BREAK SPACE}"


@dataclass(frozen=True)
class Album:
    """A study's edits with their scores and measurements, and its pictures, opened one at a time."""

    scores: Scores
    store: Store
    prompts: PromptSet
    simulated: bool

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The study's factors, the main one first."""
        return self.scores.table.factors

    @property
    def rubric(self) -> Rubric:
        """What the raters were asked."""
        return self.scores.table.rubric

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The portraits by id."""
        return self.store.sources()

    @cached_property
    def _edits(self) -> dict[str, Edit]:
        return self.store.edits()

    @cached_property
    def names(self) -> dict[str, str]:
        """The short name of each prompt."""
        return {p.id: called(p) for p in self.prompts}

    @cached_property
    def _measured(self) -> dict[str, NDArray[np.float64]]:
        return {r.measure: r.values for r in self.scores.table.readings if r.measure in READINGS}

    @cached_property
    def is_rated(self) -> bool:
        """Whether a judge scored anything."""
        return bool((self._rated >= 0).any())

    @cached_property
    def _rated(self) -> NDArray[np.int64]:
        return change(self.scores.values, self.rubric)

    @cached_property
    def moved(self) -> tuple[NDArray[np.float64], str]:
        """The distance of each edit from its source, NaN where unknown, and what the distance is."""
        if self.is_rated:
            changed = listed(
                [in_few_words(self.rubric, q) for q in drift(self.scores.values, None, self.rubric).by_axis]
            )
            words = f"rated change of the person ({changed}: distances from 'unchanged', summed)"
            return np.where(self._rated >= 0, self._rated, np.nan), words
        share = self._measured.get(CHANGED)
        return (np.full(len(self.scores.edits), np.nan), "") if share is None else (share, MEASURED)

    @property
    def key(self) -> str:
        """The explanation of the captions under the pictures."""
        visible = [q for q in grids.captioned(self.rubric) if q in self.rubric.axes]
        key = f" Under each picture its scores: {short_scales(self.rubric, visible)}."
        return key if self.is_rated else f" {READINGS_KEY}" if self._measured else ""

    @cached_property
    def diagnosed(self) -> pd.DataFrame:
        """The baseline edits of the diagnosis with their row, one seed of each case, in the order of request ids."""
        edits = self.scores.edits.assign(row=np.arange(len(self.scores.edits)), moved=self.moved[0])
        edits = edits[(edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)]
        first = edits.sort_values(["seed", "request_id"]).drop_duplicates(["editor", "source_id", "prompt_id"])
        return first.sort_values("request_id")

    def portrait(self, source_id: str, side: int, caption: str = "") -> Cell:
        """Return a source portrait as a cell of a contact sheet."""
        image = self.sources[source_id].image
        return Cell(self._small(image, side) if image else None, caption)

    def output(self, row: int, side: int, caption: str = "") -> Cell:
        """Return an edit with its scores as a cell of a contact sheet, or its outcome if there is no picture."""
        edit = self._edits[str(self.scores.edits["request_id"].iat[row])]
        if edit.image is None:
            return Cell(None, edit.outcome.value)
        return Cell(self._small(edit.image, side), caption or self.scores_in_words(row))

    def scores_in_words(self, row: int) -> str:
        """Describe the scores of an edit briefly, or its measurements if nothing is rated."""
        values = zip(self.rubric.columns, self.scores.values[row], strict=True)
        scores = grids.caption(self.rubric, {q: int(value) for q, value in values if value}, NO_BREAK)
        parts = [scores] if scores else []
        if not parts and not self.is_rated:
            readings = ((words, self._measured[m][row]) for m, words in READINGS.items() if m in self._measured)
            parts = [words.format(value).replace("-", "−") for words, value in readings if not np.isnan(value)]
        return " · ".join(parts) or "no score"

    def labels(self, source_id: str) -> str:
        """Return the dataset's labels of a portrait."""
        return f"labelled {labels_in_words(self.sources[source_id].attributes, self.factors)}"

    def _small(self, sha256: str, side: int) -> Image.Image:
        width = max(
            report_width(len(self.scores.edits)), next(w for w in WIDTHS if w >= side)
        )  # made for the cases too
        picture = Image.open(io.BytesIO(self._thumbnails.get(sha256, width)))
        picture.thumbnail((side, side), Image.Resampling.LANCZOS)
        return picture.convert("RGB")

    @cached_property
    def _thumbnails(self) -> Thumbnails:
        return Thumbnails(self.store.images, self.store.folder)

    def figure(
        self, id: str, columns: Sequence[str], rows: Sequence[SheetRow], *, side: int = SIDE, **words: object
    ) -> PhotoFigure:
        """Build a photo figure with the texts that words/figures.toml has for it, filled with `words`."""
        sheet = collage(columns, rows, simulated=self.simulated, side=side)
        return photo_figure(sheet, id, **texts_of("figures", id, album=self, **words), simulated=self.simulated)


def photo_figures(scores: Scores, store: Store, prompts: PromptSet, *, simulated: bool) -> Iterator[PhotoFigure]:
    """Return every photo figure that the study has pictures for."""
    if not any(edit.image for edit in store.edits().values()):
        return
    album = Album(scores, store, prompts, simulated)
    for draw in (mitigated, roles, mosaic, across):
        drawn = draw(album)
        if drawn is not None:
            yield drawn


def mitigated(album: Album) -> PhotoFigure | None:
    """Figure 5: source, baseline, with the feature prompt and, where there is one, the placebo."""
    edits = album.scores.edits
    before, after = pairs(edits, ConditionKind.FEATURE)
    complete = before >= 0
    edited = (edits["outcome"] == Outcome.EDITED).to_numpy()
    complete &= edited[before] & edited[after]
    before, after = before[complete], after[complete]
    if not len(after):
        return None
    placebos = dict(zip(*pairs(edits, ConditionKind.PLACEBO), strict=True))
    moved, words = album.moved
    moved = moved if album.is_rated else np.full(len(edits), np.nan)
    picks = list(_pairs_to_show(edits, before, after, moved))
    columns = ["Source", "Baseline", "Feature prompt", *(["Placebo (other seed)"] if placebos else [])]
    rows, alt = [], []
    for row_before, row_after, why in picks:
        case = edits.iloc[row_before]
        prompt = album.names[case["prompt_id"]]
        cells = [album.portrait(case["source_id"], SIDE, f"{album.labels(case['source_id'])}: {prompt}")]
        cells += [album.output(row, SIDE) for row in (row_before, row_after)]
        if placebos:
            placebo = placebos.get(row_before)
            cells.append(Cell(None, "none") if placebo is None else album.output(int(placebo), SIDE))
        rows.append(SheetRow(f"{case['editor']}: {why}", cells))
        alt.append(f"{case['editor']}, {prompt}, {why}: {cells[1].caption} becomes {cells[2].caption}.")
    return album.figure("figure5", columns, rows, what=words, pairs=" ".join(alt))


def _pairs_to_show(
    edits: pd.DataFrame, before: NDArray[np.intp], after: NDArray[np.intp], moved: NDArray[np.float64]
) -> Iterator[tuple[int, int, str]]:
    """Yield, per editor, the rows before and after of the pairs to show, each with the reason."""
    order = np.argsort(edits["request_id"].to_numpy()[after])
    before, after = before[order], after[order]
    editors = edits["editor"].to_numpy()[after]
    for editor in dict.fromkeys(edits["editor"]):
        of = np.flatnonzero(editors == editor)
        delta = moved[after[of]] - moved[before[of]]
        of, delta = (of, delta) if np.isnan(delta).all() else (of[~np.isnan(delta)], delta[~np.isnan(delta)])
        if not len(of):
            continue
        if np.isnan(delta).all():
            picks = {0: "first by request id"}
        else:
            picks = {}
            middle = int(np.argsort(delta, kind="stable")[(len(delta) - 1) // 2])
            for at, words, applies in (
                (int(delta.argmin()), "fell most", delta.min() < 0),
                (middle, "median", True),
                (int(delta.argmax()), "rose most", delta.max() > 0),
            ):
                if applies:
                    picks.setdefault(at, f"{words} ({delta[at]:+.0f})".replace("-", "−").replace("+0", "0"))
        for at, why in picks.items():
            yield int(before[of[at]]), int(after[of[at]]), why


UNCLEAR = 3
VERDICTS = {1: "followed", 2: "resisted"}
GENDER = "gender"
"""The factor that the stereotype experiment needs."""
ROLES = {1: "the male portrait's", 2: "the female portrait's", 3: "unclear whose"}


def roles(album: Album) -> PhotoFigure | None:
    """Figure 7: both inputs, the instruction, the output, and who got the role; needs the factor gender."""
    if GENDER not in {f.name for f in album.factors}:
        return None
    edits = album.scores.edits
    if not all(question in album.rubric for question in STEREOTYPE_QUESTIONS):
        return None
    verdict, role = (album.scores.of(question) for question in STEREOTYPE_QUESTIONS)
    paired = edits.assign(row=np.arange(len(edits)), verdict=verdict)
    paired = paired[(edits["experiment"] == Experiment.STEREOTYPE) & (edits["condition"] == ConditionKind.BASELINE)]
    paired = paired[paired["outcome"] == Outcome.EDITED].sort_values("request_id")
    if paired.empty:
        return None
    paired["coded"] = paired["prompt_id"].map({p.id: p.coded_gender or "" for p in album.prompts})
    selected = paired[paired["verdict"] > 0] if (paired["verdict"] > 0).any() else paired
    selected = selected.drop_duplicates(["editor", "verdict", "coded"])
    order = list(dict.fromkeys(edits["editor"]))
    selected = selected.sort_values(
        ["editor", "verdict", "coded"], key=lambda c: c.map(order.index) if c.name == "editor" else c
    )
    rows, alt = [], []
    texts = {p.id: p for p in album.prompts}
    for case in selected[selected["verdict"] != UNCLEAR].to_dict("records"):
        prompt, row = texts[case["prompt_id"]], case["row"]
        ids = sorted(case["source_id"].split("+"), key=lambda s: album.sources[s].attributes.get(GENDER) != "Male")
        judged = VERDICTS.get(case["verdict"], "no verdict")
        got = f"; the role is {ROLES[int(role[row])]}" if role[row] else ""
        coded = f" ({prompt.coded_gender}-coded)" if prompt.coded_gender else ""
        occupation = f"{prompt.occupation}{coded}: " if prompt.occupation else ""
        cells = [album.portrait(s, SIDE, album.labels(s)) for s in ids]
        cells.append(album.output(row, SIDE, f"{occupation}{judged}{got}"))
        rows.append(SheetRow(f"{case['editor']}: “{prompt.text}”", cells))
        alt.append(f"{case['editor']}, {prompt.text} {occupation}{judged}{got}.")
    if not rows:
        return None
    columns = ["Input labelled Male", "Input labelled Female", "Output"]
    return album.figure("figure7", columns, rows, cases=" ".join(alt))


def mosaic(album: Album) -> PhotoFigure | None:
    """Figure 12: outputs at random, as many as the paper shows where there are so many."""
    cases = album.diagnosed[album.diagnosed["outcome"] == Outcome.EDITED]
    if cases.empty:
        return None
    drawn = np.random.default_rng(SEED).permutation(len(cases))[:MOSAIC]
    rows = [int(row) for row in cases["row"].to_numpy()[drawn]]
    columns = min(ACROSS, math.ceil(math.sqrt(1.25 * len(rows))))
    cells = [replace(album.output(row, TINY), caption="") for row in rows]
    cells += [Cell(Image.new("RGB", (1, 1), "white"))] * (-len(cells) % columns)
    sheet = [SheetRow("", cells[first : first + columns]) for first in range(0, len(cells), columns)]
    sample = cases.iloc[drawn]
    of = ", ".join(
        count(sample[column].nunique(), what)
        for column, what in (("editor", "editor"), ("prompt_id", "prompt"), ("source_id", "portrait"))
    )
    heads = [""] * columns
    return album.figure("figure12", heads, sheet, side=TINY, outputs=len(rows), all=len(cases), seed=SEED, of=of)


def across(album: Album) -> PhotoFigure | None:
    """Figure 13: prompts by the levels of the main factor, by one editor, portraits matched on the other factors."""
    main, *others = album.factors
    names = [f.name for f in others]
    cases = album.diagnosed[(album.diagnosed[[main.name, *names]] != "").all(axis=1)]
    if cases.empty:
        return None
    editor = _most_uneven(cases, "editor", main, list(dict.fromkeys(album.scores.edits["editor"])))[0]
    cases = cases[cases["editor"] == editor]
    labels = _matched_labels(cases, main, names)
    if labels is None:
        return None
    cases = cases[(cases[names] == list(labels)).all(axis=1)].sort_values("source_id")
    face = {str(code): sources.iloc[0] for code, sources in cases.groupby(main.name)["source_id"]}
    columns = {code: title for code, title in main.titles.items() if code in face}
    prompt_ids = set(cases["prompt_id"])
    known = [p.id for p in album.prompts if p.id in prompt_ids]
    prompts = sorted(_most_uneven(cases, "prompt_id", main, known)[:PROMPTS], key=known.index)
    at = {(case["prompt_id"], case["source_id"]): case["row"] for case in cases.to_dict("records")}
    rows = [SheetRow("Source", [album.portrait(face[code], SIDE) for code in columns])]
    alt = []
    for prompt in prompts:
        outputs = [at.get((prompt, face[code])) for code in columns]
        cells = [Cell(None, "not asked") if row is None else album.output(row, SIDE) for row in outputs]
        rows.append(SheetRow(album.names[prompt], cells))
        captions = (f"{title} {cell.caption}" for title, cell in zip(columns.values(), cells, strict=True))
        alt.append(f"{album.names[prompt]}: {'; '.join(captions)}.")
    return album.figure(
        "figure13",
        [f"labelled {title}" for title in columns.values()],
        rows,
        editor=editor,
        main=main,
        label=in_a_sentence(main),
        matched=" and ".join(in_a_sentence(f) for f in others),
        labelled=labels_in_words(dict(zip(names, labels, strict=True)), others) if others else "",
        most=PROMPTS,
        prompts=" ".join(alt),
    )


def _most_uneven(cases: pd.DataFrame, column: str, main: Factor, known: Sequence[str]) -> list[str]:
    """Sort the values of a column by how much the mean change differs between levels of the main factor."""
    means = cases.groupby([column, main.name])["moved"].mean().dropna().groupby(column).agg(np.ptp)
    present = set(cases[column])
    return sorted((v for v in known if v in present), key=lambda v: -float(means.get(v, -1.0)))


def _matched_labels(cases: pd.DataFrame, main: Factor, others: Sequence[str]) -> tuple[str, ...] | None:
    """Return the labels on the other factors that most levels of the main one share; of these the median by change.

    None where no two levels share any.
    """
    if not others:
        return () if cases[main.name].nunique() > 1 else None
    alike = cases.groupby(list(others)).agg(levels=(main.name, "nunique"), moved=("moved", "mean"))
    alike = alike[alike["levels"] == alike["levels"].max()]
    if alike.empty or alike["levels"].max() < 2:
        return None
    labels = _median(alike["moved"].dropna()) if alike["moved"].notna().any() else min(alike.index)
    return labels if isinstance(labels, tuple) else (labels,)


def _median(values: pd.Series[float]) -> Any:
    """Return the index of the lower median; ties go to the smallest index."""
    ordered = values.sort_index().sort_values(kind="stable")
    return ordered.index[(len(ordered) - 1) // 2]
