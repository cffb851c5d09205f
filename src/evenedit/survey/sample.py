"""Which cases people see: drawn once by the study's sampler, stored with every case's chance of being chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pandas as pd

from evenedit.core.errors import EvenEditError
from evenedit.core.records import Experiment, Outcome, Request
from evenedit.design.requests import main_pair
from evenedit.design.sampling import balanced, priority, stratified
from evenedit.design.study_design import StudyDesign
from evenedit.protocol import FACTORS, factor
from evenedit.ratings.combine import combine, concerns
from evenedit.storage.store import Store

if TYPE_CHECKING:
    from evenedit.config.study_file import StudyFile, SurveySection

BALANCED = ("editor", "race", "gender", "age")
STRATA = ("race", "gender", "band", "editor")


def sampled(file: StudyFile, store: Store, survey: int) -> dict[str, float]:
    """Inclusion probabilities of a survey's cases by request id, as stored; drawn on the first call."""
    name = "survey-3" if survey == 3 else "survey"
    stored = store.cases(name)
    if not stored:
        store.save_cases(name, draw(file, store, survey))
        stored = store.cases(name)
    return stored


def draw(file: StudyFile, store: Store, survey: int) -> dict[str, float]:
    """Draw the cases of a survey as the study file says; only cases with a picture to show can be drawn."""
    section = file.sections.survey
    if section is None:
        raise EvenEditError("study.toml has no [survey]; add the table to ask people")
    frame = _population(file, store, section, survey)
    seed, size = file.sections.study.seed, min(section.cases, len(frame))
    if survey == 3:
        rows, chances = stratified(frame, size, by=("agreed", "coded", "editor"), seed=seed)
    elif section.cases > len(frame):
        raise EvenEditError(
            f"[survey] cases is {section.cases}, but only {len(frame)} cases have a picture to show; ask for fewer"
        )
    elif section.sampler == "balanced":
        rows, chances = balanced(frame, size, within="prompt", factors=BALANCED, seed=seed)
    elif section.sampler == "strata":
        rows, chances = stratified(frame, size, by=STRATA, seed=seed)
    else:
        classed = frame.assign(**{"class": _classes(file, store, frame)})
        rows, chances = priority(
            classed, size, quotas={str(k): v for k, v in section.quotas.items()}, seed=seed, even_over=main_pair(file)
        )
    drawn = frame.iloc[rows]
    return dict(zip(drawn["id"], (drawn["chance"].to_numpy() * chances).tolist(), strict=True))


def margins(file: StudyFile, store: Store, cases: Mapping[str, float]) -> pd.DataFrame:
    """How a sample is made up (Table 18): one row per level of each factor."""
    requests = store.requests()
    frame = _frame(file, store, [requests[ident] for ident in cases])
    order = {code: at for f in FACTORS for at, code in enumerate(f.codes)}
    rows = [
        {"factor": name, "level": level, "cases": int(count), "share": count / len(frame)}
        for name in ("category", "editor", "race", "gender", "age", "prompt")
        if frame[name].ne("").any()
        for level, count in sorted(
            frame[name].value_counts().items(), key=lambda r: (order.get(str(r[0]), 0), str(r[0]))
        )
    ]
    return pd.DataFrame(rows, columns=["factor", "level", "cases", "share"])


def _population(file: StudyFile, store: Store, section: SurveySection, survey: int) -> pd.DataFrame:
    sources, edits = store.sources(), store.edits()
    experiment = Experiment.STEREOTYPE if survey == 3 else Experiment.DIAGNOSIS
    planned = [
        r for r in StudyDesign(file, store).planned(sources) if r.experiment is experiment and r.condition == "baseline"
    ]
    shown = [r for r in planned if r.id in edits and edits[r.id].outcome is Outcome.EDITED]
    if not shown:
        raise EvenEditError("the survey has no cases yet: the study has no edits. Try: evenedit run STUDY")
    frame = _frame(file, store, shown).assign(chance=1.0)
    if survey == 3:
        return frame.assign(agreed=_agreed(file, store, frame))
    if section.population == "mitigation":
        chances = store.cases(Experiment.MITIGATION)
        frame = frame.assign(chance=frame["id"].map(chances))
        return frame[frame["chance"].notna()].reset_index(drop=True)
    return frame


def _frame(file: StudyFile, store: Store, requests: list[Request]) -> pd.DataFrame:
    sources = store.sources()
    bands = {level.code: level.band for level in factor("age").levels}
    rows = []
    for request in requests:
        prompt = file.prompt(request.prompt_id)
        single = len(request.source_ids) == 1
        labels = sources[request.source_ids[0]].attributes if single else {}
        rows.append(
            {
                "id": request.id,
                "prompt": request.prompt_id,
                "category": prompt.category,
                "coded": prompt.coded_gender or "",
                "editor": request.editor,
                "race": labels.get("race", ""),
                "gender": labels.get("gender", ""),
                "age": labels.get("age", ""),
                "band": bands.get(labels.get("age", ""), "") or "",
            }
        )
    return pd.DataFrame(rows)


def _classes(file: StudyFile, store: Store, frame: pd.DataFrame) -> list[str]:
    """Why each case would be looked at, by the judges' scores."""
    table = StudyDesign(file, store).table()
    scores = combine(table, {}, "exclude")
    if not scores.values.any():
        raise EvenEditError(
            "the priority sampler goes by the judges' scores, and there are none yet. Try: evenedit run STUDY"
        )
    found = concerns(scores, file.rates)
    by_id = dict(zip(table.edits["request_id"], found.tolist(), strict=True))
    return [str(by_id[ident]) for ident in frame["id"]]


def _agreed(file: StudyFile, store: Store, frame: pd.DataFrame) -> list[str]:
    """Whether the judges gave one verdict: the samples for people hold both kinds alike."""
    table = StudyDesign(file, store).table()
    review = dict(zip(table.edits["request_id"], combine(table, {}, "exclude").needs_review.tolist(), strict=True))
    return ["disagreed" if review[ident] else "agreed" for ident in frame["id"]]
