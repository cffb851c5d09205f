"""Which cases people see: drawn once by the study's sampler, stored with every case's chance of being chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenedit.records import Experiment, UserError

if TYPE_CHECKING:
    from evenedit.pipeline import Pipeline


def sampled(pipeline: Pipeline, survey: int) -> dict[str, float]:
    """Inclusion probabilities of a survey's cases by request id, as stored; drawn on the first call."""
    name = "survey-3" if survey == 3 else "survey"
    stored = pipeline.store.cases(name)
    if stored:
        return stored
    section = pipeline.study.file.survey
    sources = pipeline.store.sources()
    if section is None or not sources:
        raise UserError("the survey has no cases yet: the study must be run first. Try: evenedit run")
    requests = pipeline.planned(sources)
    if survey == 3:
        cases = [r for r in requests if r.experiment is Experiment.STEREOTYPE and r.condition == "baseline"]
        pipeline.store.save_cases(name, {r.id: 1.0 for r in cases})
    else:
        baseline = [r for r in requests if r.experiment is Experiment.DIAGNOSIS and r.condition == "baseline"]
        pipeline.cases(name, baseline, sources, section.cases, keep=True)
    return pipeline.store.cases(name)
