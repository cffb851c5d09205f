"""The cases people see: drawn once by the study's sampler and stored with their inclusion probabilities."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenedit.core.errors import EvenEditError
from evenedit.core.records import ConditionKind, Experiment, Outcome, Request
from evenedit.design.requests import case_frame
from evenedit.design.sampling import drawn, stratified
from evenedit.design.study_design import StudyDesign
from evenedit.ratings.combine import combine, concerns
from evenedit.storage.store import Store

if TYPE_CHECKING:
    from evenedit.config.study_file import StudyFile, SurveySection

MISSING = "missing"
"""How margins name the cases whose portrait has no label of a factor."""


def sampled(file: StudyFile, store: Store, survey: int) -> dict[str, float]:
    """Inclusion probabilities of a survey's cases by request id, as stored; drawn on the first call."""
    name = sample_name(file, survey)
    stored = store.cases(name)
    if not stored:
        store.save_cases(name, draw(file, store, survey))
        store.set_fact(f"sample {name}", json.dumps(_design(file)))
        stored = store.cases(name)
    return stored


def stale(file: StudyFile, store: Store, survey: int) -> str | None:
    """Return a warning if the study file asks for another sample than the drawn one; else None."""
    drawn = store.cases(sample_name(file, survey))
    if not drawn:
        return None
    now, known = _design(file), store.fact(f"sample {sample_name(file, survey)}")
    then = {"sizes": {}, **json.loads(known)} if known else now | ({"cases": len(drawn)} if survey != 3 else {})
    changed = [f"{key} = {then[key]!r} (now {now[key]!r})" for key in now if then.get(key) != now[key]]
    if not changed:
        return None
    return (
        f"the {len(drawn):,} cases of survey {survey} were drawn with {', '.join(changed)}; participants "
        "rate these cases. "
        "If nobody has taken part, draw a new sample: evenedit survey sample STUDY --again"
    )


def redraw(file: StudyFile, store: Store, survey: int, taken_part: int) -> dict[str, float]:
    """Draw the cases anew, in place of the stored ones; refused once somebody has rated them."""
    if taken_part:
        raise EvenEditError(
            f"{taken_part} people have taken part in survey {survey}; their cases cannot be replaced. "
            "Start a new study for another sample, or restore the previous [survey]"
        )
    draw(file, store, survey)  # raises before anything is deleted
    store.forget_cases(sample_name(file, survey))
    return sampled(file, store, survey)


def sample_name(file: StudyFile, survey: int) -> str:
    """Return the name under which the cases of a survey are stored."""
    section = file.sections.survey
    first = section.sample_of(survey) if section else survey
    return "survey" if first == 1 else f"survey-{first}"


def _design(file: StudyFile) -> dict[str, Any]:
    """Return the parts of the study file that a sample depends on."""
    section = file.sections.survey
    assert section is not None
    parts = section.model_dump(mode="json", include={"cases", "sizes", "sampler", "population", "quotas"})
    return parts | {"seed": file.sections.study.seed}


def draw(file: StudyFile, store: Store, survey: int) -> dict[str, float]:
    """Draw the cases of a survey as the study file says, among the cases that have an edited image."""
    section = file.sections.survey
    if section is None:
        raise EvenEditError("study.toml has no [survey]; add this table to collect ratings by people")
    frame = _population(file, store, section, survey)
    wanted = section.cases_of(survey)
    seed, size = file.sections.study.seed, min(wanted, len(frame))
    if survey == 3:
        rows, chances = stratified(frame, size, by=("agreed", "coded", "editor"), seed=seed)
    elif wanted > len(frame):
        raise EvenEditError(f"[survey] cases is {wanted}, but only {len(frame)} cases have a picture to show; lower it")
    else:
        if section.sampler == "priority":
            frame["class"] = _classes(file, store, frame)
        quotas = {str(k): v for k, v in section.quotas.items()}
        rows, chances = drawn(
            frame, size, section.sampler, file.factors, seed=seed, published=file.published, quotas=quotas
        )
    chosen = frame.iloc[rows]
    return dict(zip(chosen["id"], (chosen["chance"].to_numpy() * chances).tolist(), strict=True))


def listing(file: StudyFile, store: Store, cases: Mapping[str, float]) -> pd.DataFrame:
    """Return one row per case of a sample: its request, its labels and its inclusion probability."""
    requests = store.requests()
    frame = _frame(file, store, [requests[ident] for ident in cases]).rename(columns={"id": "request_id"})
    columns = ["request_id", "editor", "prompt", *(f.name for f in file.factors)]
    return frame[columns].assign(probability=list(cases.values()))


def margins(file: StudyFile, store: Store, cases: Mapping[str, float]) -> pd.DataFrame:
    """Return the composition of a sample (Table 18): one row per level of category, editor, each factor and prompt."""
    requests = store.requests()
    frame = _frame(file, store, [requests[ident] for ident in cases])
    rows = [
        *_margin("category", frame["category"]),
        *_margin("editor", frame["editor"]),
        *(row for f in file.factors for row in _margin(f.name, frame[f.name], f.codes)),
        *_margin("prompt", frame["prompt"]),
    ]
    return pd.DataFrame(rows, columns=["factor", "level", "cases", "share"])


def _margin(name: str, values: pd.Series[str], order: Sequence[str] = ()) -> Iterator[dict[str, object]]:
    """Return the rows of one factor, in the order of its levels; cases without a label come last."""
    if not values.ne("").any():
        return
    counts = {str(level): int(count) for level, count in values.value_counts().items()}
    for level in sorted(counts, key=lambda code: (not code, order.index(code) if code in order else 0, code)):
        yield {"factor": name, "level": level or MISSING, "cases": counts[level], "share": counts[level] / len(values)}


def _population(file: StudyFile, store: Store, section: SurveySection, survey: int) -> pd.DataFrame:
    sources, edits = store.sources(), store.edits()
    experiment = Experiment.STEREOTYPE if survey == 3 else Experiment.DIAGNOSIS
    planned = [
        r
        for r in StudyDesign(file, store).planned(sources)
        if r.experiment is experiment and r.condition.kind is ConditionKind.BASELINE
    ]
    pictured = [r for r in planned if r.id in edits and edits[r.id].outcome is Outcome.EDITED]
    if not pictured:
        raise EvenEditError("the survey has no cases yet: the study has no edits. Try: evenedit run STUDY")
    frame = _frame(file, store, pictured).assign(chance=1.0)
    if survey == 3:
        return frame.assign(agreed=_agreed(file, store, frame))
    if section.population == "mitigation" or section.sample_of(survey) == 2:
        chances = store.cases(Experiment.MITIGATION)
        frame = frame.assign(chance=frame["id"].map(chances))
        return frame[frame["chance"].notna()].reset_index(drop=True)
    return frame


def _frame(file: StudyFile, store: Store, requests: list[Request]) -> pd.DataFrame:
    prompts = [file.prompt(request.prompt_id) for request in requests]
    return case_frame(file, requests, store.sources()).assign(
        category=[prompt.category for prompt in prompts], coded=[prompt.coded_gender or "" for prompt in prompts]
    )


def _classes(file: StudyFile, store: Store, frame: pd.DataFrame) -> list[str]:
    """Return the priority class of each case, by the judges' scores."""
    table = StudyDesign(file, store).table()
    scores = combine(table, {}, "exclude")
    if not scores.values.any():
        raise EvenEditError(
            "the priority sampler needs the judges' scores, and there are none yet. Try: evenedit run STUDY"
        )
    classes = concerns(scores, file.rates)
    by_id = dict(zip(table.edits["request_id"], classes.tolist(), strict=True))
    return [str(by_id[ident]) for ident in frame["id"]]


def _agreed(file: StudyFile, store: Store, frame: pd.DataFrame) -> list[str]:
    """Return whether the judges agreed on each case; samples hold equally many of both kinds."""
    table = StudyDesign(file, store).table()
    review = dict(zip(table.edits["request_id"], combine(table, {}, "exclude").needs_review.tolist(), strict=True))
    return ["disagreed" if review[ident] else "agreed" for ident in frame["id"]]
