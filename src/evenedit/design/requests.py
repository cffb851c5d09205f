"""The requests of a study: the edits of each experiment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from evenedit.config.study_file import EditorSection, StudyFile
from evenedit.core import plugins
from evenedit.core.hashing import digest
from evenedit.core.records import (
    NULL_PAIR_EDITOR,
    PLACEBO_SHIFT,
    Condition,
    ConditionKind,
    Experiment,
    Request,
    Source,
)
from evenedit.design.request_table import listed_requests
from evenedit.design.sampling import drawn, greedy_fill
from evenedit.protocol import FACTORS, Factor
from evenedit.protocol.drift import drift
from evenedit.protocol.prompts import FLOOR, translated
from evenedit.protocol.questions import Rate
from evenedit.ratings.table import Scores

QUALITIES = range(90, 99)
"""JPEG qualities in which null pairs are saved: no difference can be seen."""


@dataclass(frozen=True, slots=True)
class CaseSample:
    """Requests that were drawn, each with its inclusion probability."""

    name: str
    probabilities: Mapping[str, float]


def diagnosis(file: StudyFile, sources: Mapping[str, Source]) -> list[Request]:
    """Return source × prompt × editor × seed, or the rows of the table that the study names."""
    section = file.sections.experiments.diagnosis
    if section is None:
        return []
    if section.requests is not None:
        return [
            _request(
                Experiment.DIAGNOSIS, ConditionKind.BASELINE, (row.source,), row.prompt.id, row.prompt.text, *row.how
            )
            for row in listed_requests(file, sources, section.requests)
        ]
    return [
        _request(Experiment.DIAGNOSIS, ConditionKind.BASELINE, (source,), prompt.id, prompt.text, editor, seed)
        for editor in file.editors("diagnosis")
        for seed in editor.seeds
        for source in sources
        for prompt in file.prompts
    ]


def in_languages(file: StudyFile, baseline: Sequence[Request]) -> list[Request]:
    """Return the diagnosis requests in the other languages of the study."""
    section = file.sections.experiments.diagnosis
    texts = {p.id: p for p in file.prompts}
    return [
        replace(r, condition=Condition.in_language(language), instruction=text)
        for language in (section.languages if section else ())
        for r in baseline
        if (text := translated(texts[r.prompt_id], language))
    ]


def floor(file: StudyFile, sources: Mapping[str, Source]) -> list[Request]:
    """Return source × editor with a prompt that asks for no change: the editor's drift without a request."""
    section = file.sections.experiments.diagnosis
    if section is None or not section.floor:
        return []
    return [
        _request(Experiment.DIAGNOSIS, ConditionKind.FLOOR, (source,), FLOOR.id, FLOOR.text, editor, editor.seeds[0])
        for editor in file.editors("diagnosis")
        for source in sources
    ]


def null_pairs(file: StudyFile, sources: Mapping[str, Source]) -> list[Request]:
    """Return the null pairs of each source, each with a prompt of the diagnosis that is drawn by the study's seed."""
    requests = []
    for source in sources if len(file.prompts) else ():
        rng = np.random.default_rng(int(digest([file.sections.study.seed, source]), 16))
        prompts = rng.permutation(np.array(list(file.prompts), dtype=object))
        qualities = rng.permutation(QUALITIES).tolist()
        for number in range(file.null_pairs):
            prompt, quality = prompts[number % len(prompts)], qualities[number % len(qualities)]
            condition, settings = Condition(ConditionKind.NULL_PAIR), {"quality": quality}
            how = (prompt.id, prompt.text, NULL_PAIR_EDITOR, settings, number)
            requests.append(Request(Experiment.DIAGNOSIS, condition, (source,), *how))
    return requests


def sample_cases(
    name: str,
    file: StudyFile,
    requests: Sequence[Request],
    sources: Mapping[str, Source],
    size: int,
    sampler: str = "balanced",
    concerns: Mapping[str, str] | None = None,
) -> CaseSample:
    """Draw cases from the diagnosis, by default balanced over editors and the study's factors within each prompt."""
    frame = case_frame(file, requests, sources)
    if sampler == "priority":
        frame["class"] = [(concerns or {})[ident] for ident in frame["id"]]
    rows, chances = drawn(frame, size, sampler, file.factors, seed=file.sections.study.seed, published=file.published)
    return CaseSample(name, dict(zip(frame["id"].iloc[rows], chances.tolist(), strict=True)))


def case_frame(file: StudyFile, requests: Sequence[Request], sources: Mapping[str, Source]) -> pd.DataFrame:
    """Return one row per request with the labels of its portrait, for samplers."""
    rows = []
    for request in requests:
        attributes = sources[request.source_ids[0]].attributes if len(request.source_ids) == 1 else {}
        labels = {f.name: attributes.get(f.name, "") for f in file.factors}
        bands = {f"{f.name} band": f.band_of(labels[f.name]) for f in file.factors}
        rows.append({"id": request.id, "prompt": request.prompt_id, "editor": request.editor} | labels | bands)
    return pd.DataFrame(rows)


def drifted(scores: Scores, rates: Mapping[str, Rate]) -> set[str]:
    """Return the ids of diagnosis edits whose ensemble score drifted under the study's thresholds."""
    edits = scores.edits
    baseline = (edits["experiment"] == Experiment.DIAGNOSIS) & (edits["condition"] == ConditionKind.BASELINE)
    return set(edits["request_id"][drift(scores.values, rates).drifted & baseline.to_numpy()])


def mitigation(file: StudyFile, cases: Sequence[Request], features: Mapping[str, str]) -> list[Request]:
    """Return the sampled cases with the feature prompt in front, and the placebo arm."""
    requests = []
    for case in cases:
        text = f"{features[case.source_ids[0]]} {case.instruction}"
        requests.append(_like(case, ConditionKind.FEATURE, text, case.seed))
        if file.placebo:
            requests.append(_like(case, ConditionKind.PLACEBO, case.instruction, case.seed + PLACEBO_SHIFT))
    return requests


def stereotype(file: StudyFile, sources: Mapping[str, Source]) -> list[Request]:
    """Return two portraits per prompt, one of each gender, the same for all editors; and the controls.

    These are the other pronoun, the portraits in the other order, and both, as far as the study asks for them.
    """
    section = file.sections.experiments.stereotype
    if section is None or not sources:
        return []
    pairs = pair_portraits(sources, len(file.wino), file.sections.study.seed, file.factors)
    requests = []
    for editor in file.editors("stereotype"):
        for prompt, pair in zip(file.wino, pairs, strict=True):
            for seed in editor.seeds:
                arms = [(ConditionKind.BASELINE, ConditionKind.REVERSED, prompt.text)]
                if file.swapped and prompt.swapped_text:
                    arms.append((ConditionKind.SWAPPED, ConditionKind.SWAPPED_REVERSED, prompt.swapped_text))
                for kind, other_order, text in arms:
                    requests.append(_request(Experiment.STEREOTYPE, kind, pair, prompt.id, text, editor, seed))
                    if section.reversed:
                        turned = (other_order, pair[::-1], prompt.id, text, editor, seed)
                        requests.append(_request(Experiment.STEREOTYPE, *turned))
    return requests


def pair_portraits(
    sources: Mapping[str, Source], count: int, seed: int, factors: Sequence[Factor] = FACTORS
) -> list[tuple[str, str]]:
    """Return `count` (male, female) pairs; each gender's portraits are used evenly over the other factors."""
    return list(
        zip(
            _evenly(sources, "Male", count, seed, factors),
            _evenly(sources, "Female", count, seed + 1, factors),
            strict=True,
        )
    )


def _evenly(sources: Mapping[str, Source], gender: str, count: int, seed: int, factors: Sequence[Factor]) -> list[str]:
    ids = [s.id for s in sources.values() if s.attributes.get("gender") == gender]
    others = tuple(f.name for f in factors if f.name != "gender")
    rng = np.random.default_rng(seed)
    chosen: list[str] = []
    while ids and len(chosen) < count:
        size = min(len(ids), count - len(chosen))
        frame = pd.DataFrame([sources[i].attributes for i in ids])
        draw = np.random.default_rng(int(rng.integers(2**31)))
        chosen += [ids[row] for row in greedy_fill(frame, size, [(name,) for name in others], draw)[0]]
    return chosen


def _request(
    experiment: Experiment,
    kind: ConditionKind,
    source_ids: tuple[str, ...],
    prompt_id: str,
    text: str,
    editor: EditorSection,
    seed: int,
) -> Request:
    return Request(experiment, Condition(kind), source_ids, prompt_id, text, editor.id, _settings(editor), seed)


def _settings(editor: EditorSection) -> dict[str, Any]:
    """Return the settings that shape an editor's output, defaults included."""
    return {"kind": editor.plugin, **plugins.identity("editors", editor.plugin, editor.settings)}


def _like(case: Request, kind: ConditionKind, instruction: str, seed: int) -> Request:
    """Return the same edit in another condition, with the editor and settings of the baseline."""
    return Request(
        Experiment.MITIGATION,
        Condition(kind),
        case.source_ids,
        case.prompt_id,
        instruction,
        case.editor,
        case.settings,
        seed,
    )
