"""What a study will do before it does it: counts, hours, disk, memory, money."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from evenedit import design, plugins
from evenedit.pipeline import Pipeline
from evenedit.prices import Prices
from evenedit.records import Edit, Outcome, Request


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
    usd: float | None
    """Price of what is left; 0 for an editor that costs nothing, None where the price is not known."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a run would do."""

    sources: int
    prompts: int
    lines: tuple[Line, ...]
    judge_calls: int
    judge_calls_done: int
    human_ratings: int
    disk: float | None
    """Bytes that the pictures still to come will take; None before the first one."""
    prices_of: str
    """Date of the price file."""
    notes: tuple[str, ...]

    @property
    def edits(self) -> int:
        """All edits, done or not."""
        return sum(line.edits for line in self.lines)


def make_plan(pipeline: Pipeline, prices: Path | None = None) -> Plan:
    """Count without editing, rating or spending anything."""
    study, store = pipeline.study, pipeline.store
    sources = pipeline.preview_sources()
    requests = pipeline.planned(sources)
    section = study.file.experiments.mitigation
    if section and not any(r.experiment == "mitigation" for r in requests):  # feature prompts are still to come
        cases = pipeline.cases("mitigation", design.diagnosis(study, sources), sources, section.cases)
        requests += design.mitigation(study, cases, dict.fromkeys(sources, ""))
    edits = {i: e for i, e in store.edits().items() if e.outcome is not Outcome.FAILED}
    charges = Prices.load(prices)
    lines = tuple(_lines(pipeline, requests, edits, charges))
    judges, survey = pipeline.raters(), study.file.survey
    wanted = {r.id for r in requests}
    pictures = [e.image for e in edits.values() if e.image]
    sizes = [store.images.path(p).stat().st_size for p in pictures[:50] if store.images.path(p).is_file()]
    left = sum(line.edits - line.done for line in lines)
    return Plan(
        len(sources),
        len(study.prompts),
        lines,
        len(requests) * len(judges),
        sum(ident in wanted for j in judges for ident in store.answered(j.id, j.revision)),
        survey.cases * survey.raters_per_item if survey else 0,
        mean(sizes) * left if sizes else None,
        charges.date,
        tuple(_notes(pipeline)),
    )


def probe(pipeline: Pipeline, count: int) -> None:
    """Make `count` edits with every editor, stored like all others, so that the plan knows how long one takes."""
    with pipeline.store.locked():
        run_id = pipeline.store.start_run({"probe": count})
        sources = pipeline.load_sources()
        requests = pipeline.request(sources)
        for section in pipeline.study.file.editors:
            pipeline.edit([r for r in requests if r.editor == section.id][:count], sources, run_id)
        pipeline.store.finish_run(run_id)


def _lines(pipeline: Pipeline, requests: list[Request], edits: dict[str, Edit], charges: Prices) -> list[Line]:
    executor = pipeline.study.file.executor
    sections = {e.id: e for e in pipeline.study.file.editors}
    seconds: dict[str, list[float]] = defaultdict(list)
    groups: dict[tuple[str, str, str], list[Request]] = defaultdict(list)
    for request in requests:
        groups[request.experiment.value, request.condition, request.editor].append(request)
        if request.id in edits:
            seconds[request.editor].append(edits[request.id].seconds)
    lines = []
    for (experiment, condition, editor), members in groups.items():
        done = sum(r.id in edits for r in members)
        left = len(members) - done
        speed = mean(seconds[editor]) if seconds[editor] else None
        price = charges.edit(sections[editor].plugin, sections[editor].settings)
        lines.append(
            Line(
                experiment,
                condition,
                editor,
                len(members),
                done,
                None if speed is None else speed * left / (executor.processes or executor.workers),
                None if price is None else price * left,
            )
        )
    return lines


def _notes(pipeline: Pipeline) -> list[str]:
    study = pipeline.study
    notes = []
    for editor in study.file.editors:
        memory = plugins.vram(editor.plugin)
        if memory:
            notes.append(f"{editor.id} needs about {memory} GB of GPU memory with the published settings (estimated)")
        if (
            plugins.is_remote("editors", editor.plugin)
            and not plugins.takes_seed(editor.plugin)
            and len(editor.seeds) > 1
        ):
            notes.append(f"{editor.id} takes no seed: several seeds are repeats, not reproducible draws")
    if study.file.experiments.stereotype:
        able = {e.id for e in study.editors("stereotype")}
        left_out = ", ".join(e.id for e in study.file.editors if e.id not in able)
        if left_out:
            notes.append(f"not in the stereotype experiment (one input image, or so configured): {left_out}")
    if study.file.experiments.mitigation and not study.placebo:
        notes.append("no placebo arm: improvement cannot be told from regression to the mean")
    if study.file.judges and not any(study.blind(j) for j in study.file.judges):
        notes.append("judges are told the labels (published preset); a default study keeps them blind")
    if not study.file.judges:
        what = "what instruments measure" if study.file.instruments else "pictures and counts"
        notes.append(f"no judge: the report will show {what}, no scores")
    return notes
