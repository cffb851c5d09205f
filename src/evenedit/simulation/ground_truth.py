"""What simulated editors are known to do, so that a report can show planted beside found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenedit.config.study_file import StudyFile
from evenedit.core import plugins
from evenedit.core.records import ConditionKind, Experiment, KnownEffect, Request, Source
from evenedit.protocol import Rate
from evenedit.protocol.measures import Measure
from evenedit.protocol.outcomes import OUTCOME_RATES
from evenedit.simulation.editors import SimulatedEditor

NEGLIGIBLE = 1e-9
"""A planted difference below this is none."""


def planted_effects(
    file: StudyFile, requests: Sequence[Request], sources: Mapping[str, Source]
) -> Iterator[KnownEffect]:
    """Yield every difference of a group from everybody else that a simulated editor is set to make."""
    for section in file.sections.editors:
        if not plugins.is_simulated("editors", section.plugin):
            continue
        editor = plugins.build("editors", section.plugin, section.settings)
        if not isinstance(editor, SimulatedEditor):
            continue
        baseline = [
            r for r in requests if (r.experiment, r.condition.kind) == (Experiment.DIAGNOSIS, ConditionKind.BASELINE)
        ]
        cases = [r for r in baseline if r.editor == section.id]
        for measure, chances in _chances(editor, file, cases, sources).items():
            applicable = ~np.isnan(chances)
            for factor in file.factors:
                levels = np.array([sources[r.source_ids[0]].attributes.get(factor.name, "") for r in cases])
                for code in factor.codes:
                    group, rest = applicable & (levels == code), applicable & (levels != code) & (levels != "")
                    if not (group.any() and rest.any()):
                        continue
                    difference = float(chances[group].mean() - chances[rest].mean())
                    if abs(difference) > NEGLIGIBLE:
                        yield KnownEffect(section.id, measure, {factor.name: code}, difference)


def _chances(
    editor: SimulatedEditor, file: StudyFile, cases: Sequence[Request], sources: Mapping[str, Source]
) -> dict[str, NDArray[np.float64]]:
    """Return the planted chance of every case per rate; NaN where its question does not apply."""
    chances: dict[Measure, list[float]] = {Measure.rate(name): [] for name in (*file.rates, *OUTCOME_RATES)}
    for case in cases:
        attributes, prompt = sources[case.source_ids[0]].attributes, file.prompt(case.prompt_id)
        expected = editor.expected(attributes, prompt)
        for name in OUTCOME_RATES:
            chances[Measure.rate(name)].append(editor.expected_outcome(name, attributes, prompt))
        for name, rate in file.rates.items():
            scores = expected.get(rate.question)
            chances[Measure.rate(name)].append(np.nan if scores is None else float(scores[_meeting(rate)].sum()))
    return {measure: np.array(values) for measure, values in chances.items()}


def _meeting(rate: Rate) -> slice:
    return slice(rate.at_least - 1, None) if rate.at_least is not None else slice(None, rate.at_most)
