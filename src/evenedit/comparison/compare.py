"""Two editors, or two versions of one, on the same portraits and prompts; regressions come first."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from evenedit.bundle.archive import bundled_results, open_bundle
from evenedit.cases.labels import (
    group_in_words,
    in_a_sentence,
    labels_in_words,
    refuse_different_factors,
    refuse_other_questions,
)
from evenedit.core.errors import EvenEditError
from evenedit.core.records import is_simulated
from evenedit.protocol import Factor, Rubric, factor
from evenedit.protocol.drift import drift
from evenedit.protocol.measures import Measure, MeasureKind
from evenedit.ratings.combine import combine
from evenedit.ratings.ratings_file import FILE as RATINGS
from evenedit.ratings.ratings_file import read_ratings
from evenedit.ratings.table import Scores
from evenedit.report.render.html import put, render, thumbnail
from evenedit.report.render.index import Names
from evenedit.report.render.table import Cell, Number, Table, Unit, describe_table, format_number, short_list
from evenedit.results.results import Results
from evenedit.stats import AnalysisRules
from evenedit.stats.disparity.paired_editors import Corrections, Difference, Pairs, corrections, differences, pair
from evenedit.stats.pipeline import corrected_estimates
from evenedit.study.analysis import SURVEY, analysis_rules
from evenedit.study.context import StudyContext
from evenedit.study.results_file import is_bundle, is_study, read_results, results_file

MOST_PAIRS = 12
"""The number of pairs of pictures on the page."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two editors that are compared."""

    where: Path
    """The study, or the folder of the results."""
    editor: str
    scores: Scores
    rules: AnalysisRules
    prompts: Mapping[str, str]
    """The text of each prompt by id, where it is known."""
    people: Corrections
    """The editor's estimates as corrected by people's ratings, where they rated enough."""
    study: StudyContext | None = None
    """The study with its pictures and settings; None where there are only results."""

    @property
    def rubric(self) -> Rubric:
        """What its raters were asked."""
        return self.scores.table.rubric

    @property
    def factors(self) -> tuple[Factor, ...]:
        """What its portraits are grouped by."""
        return self.scores.table.factors

    @classmethod
    def load(cls, where: Path, editor: str | None) -> Side:
        """Return the editor of a study, or of results with the ratings beside them."""
        if is_study(where):
            return cls.of(StudyContext.load(where), editor)
        if is_bundle(where):
            bundle = open_bundle(where)
            with TemporaryDirectory() as place:
                (Path(place) / RATINGS).write_bytes(bundle.read(RATINGS))
                return cls.with_ratings(where, editor, bundled_results(bundle), Path(place) / RATINGS)
        path = results_file(where)
        return cls.with_ratings(path.parent, editor, read_results(path), path.parent / RATINGS)

    @classmethod
    def with_ratings(cls, where: Path, editor: str | None, results: Results, ratings: Path) -> Side:
        """Return the editor of results, with the ratings in a file."""
        rules = AnalysisRules.from_dict(results.rules)
        name = _chosen(where, editor, results.editors)
        table = read_ratings(ratings, results.factors, int(rules.ensemble.get("reviewers", 1)), results.full_rubric)
        scores = combine(table, rules.ensemble, rules.missing)
        return cls(where, name, scores, rules, results.prompts, corrections(results.powered, name))

    @classmethod
    def of(cls, study: StudyContext, editor: str | None) -> Side:
        """Return a study's editor; it need not be named where the study has only one."""
        name = _chosen(study.folder, editor, [e.id for e in study.file.sections.editors])
        rules, prompts = analysis_rules(study.file), {p.id: p.text for p in study.file.prompts}
        table = study.table()
        powered = corrected_estimates(table, rules, study.store.cases(SURVEY))
        scores = combine(table, rules.ensemble, rules.missing)
        return cls(study.folder, name, scores, rules, prompts, corrections(powered, name), study)


def _chosen(where: Path, editor: str | None, ids: Sequence[str]) -> str:
    """Return the named editor, or the only one."""
    if editor is None and len(ids) > 1:
        raise EvenEditError(f"{where} has several editors; name one: {', '.join(f'{where}:{i}' for i in ids)}")
    if not ids or (editor is not None and editor not in ids):
        raise EvenEditError(f"{where} has no editor '{editor or ''}'; it has: {', '.join(ids) or 'none'}")
    return editor or ids[0]


def compare(first: Side, second: Side, out: Path) -> Path:
    """Write compare.html, compare.json and compare.csv, and return the page."""
    refuse_different_factors([first.factors, second.factors])
    refuse_other_questions([first.rubric, second.rubric])
    _refuse_other_pictures(first, second)
    rules = first.rules
    if second.rules.to_dict() != rules.to_dict():
        raise EvenEditError("the two studies combine or count ratings by different rules; make them equal to compare")
    pairs = pair(first.scores, second.scores, first.editor, second.editor)
    changes = differences(pairs, rules, (first.people, second.people))
    names = [*first.scores.table.raters, *second.scores.table.raters, first.editor, second.editor]
    simulated = tuple(sorted({n for n in names if is_simulated(n)}))
    factors = first.factors
    name = Names(first.rubric)
    table = _table(changes, simulated, factors, name)
    titles = _titles(first, second)
    page = render(
        "compare.html",
        title=f"{titles[0]} and {titles[1]}",
        first=titles[0],
        second=titles[1],
        pairs=f"{len(pairs.rows):,}",
        unpaired=f"{pairs.unpaired:,}",
        settings=_settings(first, second),
        simulated=short_list(simulated),
        level=f"{100 * rules.confidence:g}%",
        sentences=list(_sentences(changes, factors, name)),
        rule=_rule(first.rubric),
        cards=list(_cards(first, second, pairs)),
        table=table,
    )
    body = {
        "schema": "evenedit.compare/1",
        "first": titles[0],
        "second": titles[1],
        "pairs": len(pairs.rows),
        "unpaired": pairs.unpaired,
        "simulated": simulated,
        "differences": [{**asdict(d), "change": d.change} for d in changes],
    }
    put(out / "compare.json", (json.dumps(body, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
    put(out / "compare.csv", table.to_csv().encode())
    put(out / "compare.html", page.encode())
    return out / "compare.html"


def _refuse_other_pictures(first: Side, second: Side) -> None:
    """Raise an error where a portrait or prompt of one is another in the other, as far as that can be known."""
    if first.study is not None and second.study is not None:
        known, others = first.study.store.sources(), second.study.store.sources()
        changed = [i for i in known if i in others and known[i].image != others[i].image]
        if changed:
            raise EvenEditError(f"portrait '{changed[0]}' is another picture in the second study ({len(changed)} are)")
    labels, other_labels = _labels(first), _labels(second)
    differing = [i for i in labels if labels[i] != other_labels.get(i, labels[i])]
    if differing:
        raise EvenEditError(f"portrait '{differing[0]}' has other labels in the second study ({len(differing)} have)")
    reworded = [i for i, text in second.prompts.items() if first.prompts.get(i, text) != text]
    if reworded:
        raise EvenEditError(f"prompt '{reworded[0]}' has another text in the second study")


def _labels(side: Side) -> dict[str, tuple[str, ...]]:
    """Return the labels of each portrait."""
    names = [f.name for f in side.factors]
    portraits = side.scores.edits.drop_duplicates("source_id")
    return {row[0]: tuple(row[1:]) for row in portraits[["source_id", *names]].itertuples(index=False, name=None)}


def _rule(rubric: Rubric) -> str:
    """Describe how the pairs of pictures are chosen."""
    changes = ", ".join(rubric.title(q).lower().removesuffix(" change") for q in rubric.changes)
    return (
        f"The {MOST_PAIRS} pairs whose rated drift ({changes}) grew most from A to B; ties go to the smallest portrait "
        "and prompt id."
    )


def _titles(first: Side, second: Side) -> tuple[str, str]:
    if first.editor != second.editor:
        return first.editor, second.editor
    a, b = (f"{side.editor} in {side.where.resolve().name}" for side in (first, second))
    return (a, b) if a != b else (f"{first.editor} in {first.where}", f"{second.editor} in {second.where}")


def _settings(first: Side, second: Side) -> str:
    """Describe the settings in which the two editors differ, since they may explain a difference in results."""
    settings: list[dict[str, Any]] = []
    for study, editor in ((first.study, first.editor), (second.study, second.editor)):
        if study is None:
            return "not known: there are results only"
        section = next(e for e in study.file.sections.editors if e.id == editor)
        settings.append({"kind": section.plugin, "seeds": section.seeds, **section.settings})
    keys = [k for k in dict.fromkeys([*settings[0], *settings[1]]) if settings[0].get(k) != settings[1].get(k)]
    values = [[json.dumps(g[k]) if k in g else "default" for g in settings] for k in keys]
    return "; ".join(f"{k}: {a} in A, {b} in B" for k, (a, b) in zip(keys, values, strict=True))


def _sentence(d: Difference, factors: Sequence[Factor], name: Names) -> str:
    measure = Measure(d.measure)
    kind, what = measure.kind, name(measure.name).lower()
    unit: Unit = "change" if kind == MeasureKind.MEAN else "points"
    interval = "" if d.low is None or d.high is None else Number(d.value, unit, d.low, d.high).interval
    if kind == MeasureKind.GAP:
        over = in_a_sentence(_factor_of(d, factors))
        return f"The gap in {what} over {over} moved by {format_number(d.value, unit)} {interval}{_judges_alone(d)}."
    group = f" for {group_in_words(d.group, factors)}" if d.group else ""
    statistic = "mean" if kind == MeasureKind.MEAN else "rate"
    moved = f"moved by {format_number(d.value, unit)} {interval} over {d.pairs:,} pairs"
    return f"The {statistic} of {what}{group} {moved}{_judges_alone(d)}."


def _judges_alone(d: Difference) -> str:
    """Return the judges' own difference in words; empty where people's ratings do not correct it."""
    if d.judge_value is None:
        return ""
    unit: Unit = "change" if Measure(d.measure).kind == MeasureKind.MEAN else "points"
    return f", corrected by people's ratings; judges alone: {format_number(d.judge_value, unit)}"


def _factor_of(gap: Difference, factors: Sequence[Factor]) -> Factor:
    """Return the factor of a gap."""
    return factor(next(iter(gap.group)), factors)


def _sentences(changes: Sequence[Difference], factors: Sequence[Factor], name: Names) -> Iterator[tuple[str, str, str]]:
    for change, badge, most in (("regression", "caution", 10), ("improvement", "clear", 6)):
        several = [d for d in changes if d.change == change]
        for d in several[:most]:
            yield badge, change.capitalize(), _sentence(d, factors, name)
        if len(several) > most:
            yield "observed", "More", f"The table has {len(several) - most} further {change}s."
    if not any(d.change == "regression" for d in changes):
        rates = (d for d in changes if Measure(d.measure).kind == MeasureKind.RATE)
        widest = max((d.high for d in rates if d.high is not None), default=None)
        reach = (
            ""
            if widest is None
            else f" The intervals still allow a rate to be up to {format_number(widest, 'points')} higher."
        )
        yield "none", "No regression shown", f"No measure is clearly worse in B.{reach}"
    yield "observed", "How it is tested", _multiplicity(changes)


def _multiplicity(changes: Sequence[Difference]) -> str:
    """Describe how many differences were tested and how that is corrected for."""
    tested = [d for d in changes if d.p is not None]
    groups = sum(bool(d.group) and "*" not in d.group.values() for d in tested)
    corrected = sum(d.judge_value is not None for d in changes)
    whose = (
        f"{corrected} are corrected by people's ratings over all edits, the editors taken as independent; the judges' "
        "own stand beside. All others are the judges' own"
        if corrected
        else "All numbers are the judges' own, not corrected by people's ratings"
    )
    return (
        f"{len(tested)} differences are tested, so p is adjusted by Holm: {len(tested) - groups} of everybody and of "
        f"gaps as one family, {groups} of single groups as another, and doubled where there are both. A change is one "
        "where the adjusted p is below 0.05: of two editors that are alike, at most one comparison in twenty has any. "
        f"Intervals are clustered by source and prompt and not adjusted. {whose}."
    )


def _table(changes: Sequence[Difference], simulated: tuple[str, ...], factors: Sequence[Factor], name: Names) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for d in changes:
        measure = Measure(d.measure)
        level: Unit = "score" if measure.kind == MeasureKind.MEAN else "share"
        step: Unit = "change" if measure.kind == MeasureKind.MEAN else "points"
        is_gap = measure.kind == MeasureKind.GAP
        group = f"over {in_a_sentence(_factor_of(d, factors))}" if is_gap else group_in_words(d.group, factors)
        rows.append(
            (
                d.change,
                measure.kind.capitalize(),
                measure.name,
                group,
                Number(d.first, level),
                Number(d.second, level),
                Number(d.value, step, d.low, d.high),
                Number(d.judge_value, step),
                Number(d.p_adjusted, "p"),
                d.pairs,
            )
        )
    return describe_table("differences", rows, simulated, name, multiplicity=_multiplicity(changes))


def _cards(first: Side, second: Side, pairs: Pairs) -> Iterator[dict[str, Any]]:
    if first.study is None or second.study is None:
        return
    rubric = first.rubric
    axes = [rubric.at(q) for q in rubric.changes]
    answers = [side.scores.values[pairs.rows[:, at]] for at, side in enumerate((first, second))]
    values = [each[:, axes].astype(int) for each in answers]
    before, after = (drift(each, first.rules.rates, rubric) for each in answers)
    both = before.complete & after.complete
    growth = np.nan_to_num(after.points - before.points)
    order = [int(i) for i in np.lexsort((np.arange(len(growth)), -growth)) if both[i] and growth[i] > 0][:MOST_PAIRS]
    stores = first.study.store, second.study.store
    edits_of = [store.edits() for store in stores]
    sources = stores[0].sources()
    prompts = {p.id: p.name or p.id for p in first.study.file.prompts}
    seen: dict[str, str] = {}
    for at in order:
        rows = [side.scores.edits.iloc[pairs.rows[at, n]] for n, side in enumerate((first, second))]
        pictures = [edits[row["request_id"]].image for edits, row in zip(edits_of, rows, strict=True)]
        source = sources[rows[0]["source_id"]]
        assert pictures[0] is not None and pictures[1] is not None
        images = stores[0].images, stores[1].images
        yield {
            "prompt": prompts[rows[0]["prompt_id"]],
            "prompt_id": rows[0]["prompt_id"],
            "group": labels_in_words(source.attributes, first.factors),
            "pictures": [
                ("Source", thumbnail(images[0].open(source.image), seen)),
                ("A", thumbnail(images[0].open(pictures[0]), seen)),
                ("B", thumbnail(images[1].open(pictures[1]), seen)),
            ],
            "scores": [
                (rubric.title(q), int(values[0][at][n]), int(values[1][at][n]))
                for n, q in enumerate(rubric.changes)
                if values[0][at][n] and values[1][at][n]
            ],
        }
