"""Figures made of pictures (5, 7, 12 and 13 of the paper): a stated rule chooses every case, nobody's hand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from PIL import Image

from evenedit.core.records import Edit, Experiment, Outcome, Source
from evenedit.protocol import FACTORS, PromptSet
from evenedit.ratings.table import QUESTION_IDS, Scores
from evenedit.report.figures.photo_figure import PhotoFigure, photo_figure
from evenedit.report.render.contact_sheet import Cell, SheetRow, collage
from evenedit.report.render.index import group_name
from evenedit.stats.disparity.mitigation import PLACEBO, pairs
from evenedit.stats.disparity.preference import change
from evenedit.storage.store import Store
from evenedit.study.example_cases import called

SIDE = 224
"""Pixels of a picture on a sheet."""
SMALL = 160
"""Pixels of a picture on a sheet of many."""
ACROSS = 7
"""Prompts side by side on the mosaic; further ones go below."""
SHORT = {
    "edit_success": "edit",
    "skin_tone": "skin",
    "race_drift": "race",
    "gender_drift": "gender",
    "age_drift": "age",
    "aging_accuracy": "target age",
}
"""What the words under a picture call a question."""
RATED = "rated change of the person (skin tone, race, gender and age: distances from 'unchanged', summed)"
MEASURED = "measured share of the picture that changed"
READ = {"mean.skin_delta_L": "skin L* {:+.1f}", "mean.changed_share": "{:.0%} changed"}
"""What the words under a picture say of a reading, where nothing is rated."""
KEY = (
    "Under each picture its scores: edit 5 = fully applied; skin 3 = unchanged, above 3 lighter; race and gender "
    "1 = same; age 3 = unchanged, above 3 older."
)
READ_KEY = "Under each picture what was measured: change of the skin's lightness (L*) and share of the picture changed."
NO_BREAK = "\N{NO-BREAK SPACE}"
NOTHING_PROVEN = "Pictures illustrate and prove nothing by themselves."


@dataclass(frozen=True)
class Album:
    """A study's edits with what is known of each, and its pictures, opened one at a time."""

    scores: Scores
    store: Store
    prompts: PromptSet
    simulated: bool

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The portraits by id."""
        return self.store.sources()

    @cached_property
    def _made(self) -> dict[str, Edit]:
        return self.store.edits()

    @cached_property
    def names(self) -> dict[str, str]:
        """What each prompt is called."""
        return {p.id: called(p) for p in self.prompts}

    @cached_property
    def _measured(self) -> dict[str, NDArray[np.float64]]:
        return {r.measure: r.values for r in self.scores.table.readings if r.measure in READ}

    @cached_property
    def is_rated(self) -> bool:
        """Whether a judge scored anything."""
        return bool((self._rated >= 0).any())

    @cached_property
    def _rated(self) -> NDArray[np.int64]:
        return change(self.scores.values)

    @cached_property
    def moved(self) -> tuple[NDArray[np.float64], str]:
        """How far each edit is from its source, NaN where unknown, and what that is."""
        if self.is_rated:
            return np.where(self._rated >= 0, self._rated, np.nan), RATED
        found = self._measured.get("mean.changed_share")
        return (np.full(len(self.scores.edits), np.nan), "") if found is None else (found, MEASURED)

    @property
    def key(self) -> str:
        """What the words under the pictures mean."""
        return f" {KEY}" if self.is_rated else f" {READ_KEY}" if self._measured else ""

    @cached_property
    def diagnosed(self) -> pd.DataFrame:
        """The baseline edits of the diagnosis with their row, one seed of each case, in the order of request ids."""
        edits = self.scores.edits.assign(row=np.arange(len(self.scores.edits)), moved=self.moved[0])
        edits = edits[(edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == "baseline")]
        first = edits.sort_values(["seed", "request_id"]).drop_duplicates(["editor", "source_id", "prompt_id"])
        return first.sort_values("request_id")

    def portrait(self, source_id: str, side: int, caption: str = "") -> Cell:
        """A source, small."""
        return Cell(self._small(self.sources[source_id].image, side), caption)

    def output(self, row: int, side: int, caption: str = "") -> Cell:
        """An edit, small, with its scores; or why there is none."""
        edit = self._made[str(self.scores.edits["request_id"].iat[row])]
        if edit.image is None:
            return Cell(None, edit.outcome.value)
        return Cell(self._small(edit.image, side), caption or self.told(row))

    def told(self, row: int) -> str:
        """The scores of an edit in few words, or its readings where nothing is rated."""
        scored = zip(QUESTION_IDS, self.scores.values[row], strict=True)
        said = [f"{SHORT[q]}{NO_BREAK}{value}" for q, value in scored if q in SHORT and value]
        if not said and not self.is_rated:
            found = ((words, self._measured[m][row]) for m, words in READ.items() if m in self._measured)
            said = [words.format(value).replace("-", "−") for words, value in found if not np.isnan(value)]
        return " · ".join(said) or "no score"

    def labels(self, source_id: str) -> str:
        """What the dataset calls a source."""
        return f"labelled {group_name(self.sources[source_id].attributes)}"

    def _small(self, sha256: str, side: int) -> Image.Image:
        picture = self.store.images.open(sha256)
        picture.thumbnail((side, side), Image.Resampling.LANCZOS)
        return picture.convert("RGB")

    def plate(self, sheet: Image.Image, id: str, title: str, caption: str, alt: str) -> PhotoFigure:
        """A sheet with its words."""
        return photo_figure(sheet, id, title, f"{caption} {NOTHING_PROVEN}", alt, simulated=self.simulated)


def plates(scores: Scores, store: Store, prompts: PromptSet, *, simulated: bool) -> Iterator[PhotoFigure]:
    """Every figure of pictures that the study can fill."""
    album = Album(scores, store, prompts, simulated)
    for draw in (mitigated, roles, mosaic, across):
        drawn = draw(album)
        if drawn is not None:
            yield drawn


def mitigated(album: Album) -> PhotoFigure | None:
    """Figure 5: source, baseline, with the feature prompt and, where there is one, the placebo."""
    edits = album.scores.edits
    before, after = pairs(edits, "feature")
    whole = before >= 0
    shown = (edits["outcome"] == Outcome.EDITED).to_numpy()
    whole &= shown[before] & shown[after]
    before, after = before[whole], after[whole]
    if not len(after):
        return None
    again = dict(zip(*pairs(edits, PLACEBO), strict=True))
    moved, words = album.moved
    moved = moved if album.is_rated else np.full(len(edits), np.nan)
    picks = list(_pairs_to_show(edits, before, after, moved))
    columns = ["Source", "Baseline", "Feature prompt", *(["Placebo (other seed)"] if again else [])]
    rows, alt = [], []
    for row_before, row_after, why in picks:
        case = edits.iloc[row_before]
        prompt = album.names[case["prompt_id"]]
        cells = [album.portrait(case["source_id"], SIDE, f"{album.labels(case['source_id'])}: {prompt}")]
        cells += [album.output(row, SIDE) for row in (row_before, row_after)]
        if again:
            placebo = again.get(row_before)
            cells.append(Cell(None, "none") if placebo is None else album.output(int(placebo), SIDE))
        rows.append(SheetRow(f"{case['editor']}: {why}", cells))
        alt.append(f"{case['editor']}, {prompt}, {why}: {cells[1].caption} becomes {cells[2].caption}.")
    rule = (
        f"For every editor the pair whose {words} fell most, the median pair and the one where it rose most; ties go "
        "to the smallest request id."
        if album.is_rated
        else "For every editor the first pair by request id: nothing is rated."
    )
    return album.plate(
        collage(columns, rows, simulated=album.simulated, side=SIDE),
        "figure5",
        "Source, baseline and feature prompt",
        rule + album.key,
        "Rows of pictures: " + " ".join(alt),
    )


def _pairs_to_show(
    edits: pd.DataFrame, before: NDArray[np.intp], after: NDArray[np.intp], moved: NDArray[np.float64]
) -> Iterator[tuple[int, int, str]]:
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
            for at, words, there in (
                (int(delta.argmin()), "fell most", delta.min() < 0),
                (middle, "median", True),
                (int(delta.argmax()), "rose most", delta.max() > 0),
            ):
                if there:
                    picks.setdefault(at, f"{words} ({delta[at]:+.0f})".replace("-", "−").replace("+0", "0"))
        for at, why in picks.items():
            yield int(before[of[at]]), int(after[of[at]]), why


UNCLEAR = 3
VERDICTS = {1: "followed", 2: "resisted"}
ROLES = {1: "the male portrait's", 2: "the female portrait's", 3: "unclear whose"}


def roles(album: Album) -> PhotoFigure | None:
    """Figure 7: both inputs, the instruction, the output, and who got the role."""
    edits = album.scores.edits
    verdict, role = (album.scores.values[:, QUESTION_IDS.index(q)] for q in ("stereotype", "target_role"))
    paired = edits.assign(row=np.arange(len(edits)), verdict=verdict)
    paired = paired[(edits["experiment"] == Experiment.STEREOTYPE) & (edits["condition"] == "baseline")]
    paired = paired[paired["outcome"] == Outcome.EDITED].sort_values("request_id")
    if paired.empty:
        return None
    paired["coded"] = paired["prompt_id"].map({p.id: p.coded_gender or "" for p in album.prompts})
    kept = paired[paired["verdict"] > 0] if (paired["verdict"] > 0).any() else paired
    kept = kept.drop_duplicates(["editor", "verdict", "coded"])
    order = list(dict.fromkeys(edits["editor"]))
    kept = kept.sort_values(
        ["editor", "verdict", "coded"], key=lambda c: c.map(order.index) if c.name == "editor" else c
    )
    rows, alt = [], []
    texts = {p.id: p for p in album.prompts}
    for case in kept[kept["verdict"] != UNCLEAR].to_dict("records"):
        prompt, row = texts[case["prompt_id"]], case["row"]
        ids = sorted(case["source_id"].split("+"), key=lambda s: album.sources[s].attributes.get("gender") != "Male")
        said = VERDICTS.get(case["verdict"], "no verdict")
        got = f"; the role is {ROLES[int(role[row])]}" if role[row] else ""
        coded = f" ({prompt.coded_gender}-coded)" if prompt.coded_gender else ""
        occupation = f"{prompt.occupation}{coded}: " if prompt.occupation else ""
        cells = [album.portrait(s, SIDE, album.labels(s)) for s in ids]
        cells.append(album.output(row, SIDE, f"{occupation}{said}{got}"))
        rows.append(SheetRow(f"{case['editor']}: “{prompt.text}”", cells))
        alt.append(f"{case['editor']}, {prompt.text} {occupation}{said}{got}.")
    if not rows:
        return None
    return album.plate(
        collage(["Input labelled Male", "Input labelled Female", "Output"], rows, simulated=album.simulated, side=SIDE),
        "figure7",
        "Who gets the role",
        "For every editor, coded gender of the occupation and verdict (followed, resisted) the first case by request "
        "id. Both portraits were given with the instruction beside them; verdict and role as judged.",
        "Rows of two portraits and one output: " + " ".join(alt),
    )


def mosaic(album: Album) -> PhotoFigure | None:
    """Figure 12: one face, every prompt, every editor."""
    cases = album.diagnosed
    if cases.empty:
        return None
    mean = cases.groupby("source_id")["moved"].mean().dropna()
    source = _median(mean) if len(mean) else min(cases["source_id"])
    words = album.moved[1]
    rule = (
        f"The face with the median of all faces' mean {words}"
        if len(mean)
        else "The first face by id: nothing is rated"
    )
    of = cases[cases["source_id"] == source]
    editors = list(dict.fromkeys(album.scores.edits["editor"][album.diagnosed.index].sort_index()))
    prompts = sorted(set(of["prompt_id"]))
    at = {(case["editor"], case["prompt_id"]): case["row"] for case in of.to_dict("records")}
    sheets = []
    for first in range(0, len(prompts), ACROSS):
        part = prompts[first : first + ACROSS]
        columns = ["Source", *(f"{p} {album.names[p]}" for p in part)]
        columns += [""] * (min(ACROSS, len(prompts)) - len(part))
        rows = [
            SheetRow(
                e, [album.portrait(source, SMALL), *_filled(album, [at.get((e, p)) for p in part], len(columns) - 1)]
            )
            for e in editors
        ]
        sheets.append(collage(columns, rows, simulated=album.simulated and not first, side=SMALL))
    return album.plate(
        _below(sheets),
        "figure12",
        "One face, every prompt",
        f"A portrait {album.labels(source)} under every prompt (columns) by every editor (rows). {rule}; ties go to "
        f"the smallest id.{album.key}",
        f"Mosaic of {len(at)} edits of one portrait {album.labels(source)}: {len(editors)} editors by {len(prompts)} "
        "prompts.",
    )


def _filled(album: Album, rows: Sequence[int | None], size: int) -> list[Cell]:
    cells = [Cell(None, "not asked") if row is None else album.output(row, SMALL) for row in rows]
    blank = Cell(Image.new("RGB", (1, 1), "white"))
    return [*cells, *(blank for _ in range(size - len(cells)))]


def across(album: Album) -> PhotoFigure | None:
    """Figure 13: one prompt across races, one row for each editor."""
    cases = album.diagnosed[album.diagnosed["race"] != ""]
    races = [code for code in FACTORS[0].codes if (cases["race"] == code).any()]
    if len(races) < 2:
        return None
    means = cases.groupby(["prompt_id", "race"])["moved"].mean().dropna().groupby("prompt_id").agg(np.ptp)
    known = [p.id for p in album.prompts if p.id in set(cases["prompt_id"])]
    prompt = max((p for p in known if p in means.index), key=lambda p: float(means[p]), default=known[0])
    asked = cases[cases["prompt_id"] == prompt]
    alike = asked.groupby(["gender", "age"]).agg(races=("race", "nunique"), moved=("moved", "mean"))
    alike = alike[alike["races"] == alike["races"].max()]
    if alike["races"].max() < 2:
        return None
    gender, age = _median(alike["moved"].dropna()) if alike["moved"].notna().any() else min(alike.index)
    chosen = asked[(asked["gender"] == gender) & (asked["age"] == age)].sort_values("source_id")
    face = {race: sources.iloc[0] for race, sources in chosen.groupby("race")["source_id"]}
    columns = [race for race in races if race in face]
    editors = [e for e in dict.fromkeys(album.scores.edits["editor"]) if e in set(chosen["editor"])]
    at = {(case["editor"], case["source_id"]): case["row"] for case in chosen.to_dict("records")}
    rows = [SheetRow("Source", [album.portrait(face[race], SIDE) for race in columns])]
    alt = []
    for editor in editors:
        found = [at.get((editor, face[race])) for race in columns]
        cells = [Cell(None, "not asked") if row is None else album.output(row, SIDE) for row in found]
        rows.append(SheetRow(editor, cells))
        said = (f"{group_name({'race': race})} {cell.caption}" for race, cell in zip(columns, cells, strict=True))
        alt.append(f"{editor}: {'; '.join(said)}.")
    words = album.moved[1]
    rule = (
        f"The prompt whose mean {words} differs most between race labels, so it is not typical; the gender "
        "and age of the median change under it"
        if words
        else "The first prompt, gender and age: nothing is rated"
    )
    group = group_name({"gender": str(gender), "age": str(age)})
    return album.plate(
        collage(
            [f"labelled {group_name({'race': race})}" for race in columns], rows, simulated=album.simulated, side=SIDE
        ),
        "figure13",
        "One prompt across races",
        f"{prompt} {album.names[prompt]}, portraits labelled {group}, by every editor. {rule}.{album.key}",
        f"Grid of edits by race label and editor for {album.names[prompt]}. " + " ".join(alt),
    )


def _median(values: pd.Series[float]) -> Any:
    """The index of the lower median; ties go to the smallest index."""
    ordered = values.sort_index().sort_values(kind="stable")
    return ordered.index[(len(ordered) - 1) // 2]


def _below(sheets: Sequence[Image.Image]) -> Image.Image:
    whole = Image.new("RGB", (max(s.width for s in sheets), sum(s.height for s in sheets)), "white")
    top = 0
    for sheet in sheets:
        whole.paste(sheet, (0, top))
        top += sheet.height
    return whole
