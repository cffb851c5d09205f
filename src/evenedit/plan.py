"""What a study will do before it does it: counts, calls, time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from evenedit import design
from evenedit.pipeline import Pipeline
from evenedit.records import Outcome


@dataclass(frozen=True, slots=True)
class Line:
    """One part of the work."""

    experiment: str
    condition: str
    editor: str
    edits: int
    done: int
    seconds: float | None
    """Time left at the speed measured so far; None before the first edit."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a run would do."""

    sources: int
    prompts: int
    lines: tuple[Line, ...]
    judge_calls: int
    judge_calls_done: int
    human_ratings: int
    notes: tuple[str, ...]

    @property
    def edits(self) -> int:
        """All edits, done or not."""
        return sum(line.edits for line in self.lines)


def make_plan(pipeline: Pipeline) -> Plan:
    """Count without editing, rating or spending anything."""
    study, store = pipeline.study, pipeline.store
    sources = pipeline.preview_sources()
    requests = pipeline.planned(sources)
    section = study.file.experiments.mitigation
    if section and not any(r.experiment == "mitigation" for r in requests):  # feature prompts are still to come
        cases = pipeline.cases("mitigation", design.diagnosis(study, sources), sources, section.cases)
        requests += design.mitigation(study, cases, dict.fromkeys(sources, ""))
    edits = store.edits()
    lines = []
    keys = Counter((r.experiment.value, r.condition, r.editor) for r in requests)
    for (experiment, condition, editor), count in keys.items():
        finished = [
            edits[r.id]
            for r in requests
            if (r.experiment, r.condition, r.editor) == (experiment, condition, editor)
            and r.id in edits
            and edits[r.id].outcome is not Outcome.FAILED
        ]
        speed = sum(e.seconds for e in finished) / len(finished) if finished else None
        left = None if speed is None else speed * (count - len(finished)) / study.file.executor.workers
        lines.append(Line(experiment, condition, editor, count, len(finished), left))
    judges = pipeline.raters()
    survey = study.file.survey
    wanted = {r.id for r in requests}
    return Plan(
        len(sources),
        len(study.prompts),
        tuple(lines),
        len(requests) * len(judges),
        sum(ident in wanted for j in judges for ident in store.answered(j.id, j.revision)),
        survey.cases * survey.raters_per_item if survey else 0,
        tuple(_notes(pipeline)),
    )


def _notes(pipeline: Pipeline) -> list[str]:
    study = pipeline.study
    notes = []
    if study.file.experiments.stereotype:
        able = {e.id for e in study.editors("stereotype")}
        left_out = [e.id for e in study.file.editors if e.id not in able]
        if left_out:
            notes.append(f"not in the stereotype experiment (one input image, or so configured): {', '.join(left_out)}")
    if study.file.experiments.mitigation and not study.placebo:
        notes.append("no placebo arm: improvement cannot be told from regression to the mean")
    if not any(study.blind(j) for j in study.file.judges):
        notes.append("judges are told the labels (published preset); a default study keeps them blind")
    return notes
