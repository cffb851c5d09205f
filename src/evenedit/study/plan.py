"""What a study will do before it does it: counts, hours, disk, memory, money."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from evenedit.core import plugins
from evenedit.core.progress import Progress
from evenedit.core.records import Edit, Outcome, Request, Source, Status
from evenedit.design import requests as design
from evenedit.design.assignments import Assignment
from evenedit.design.study_design import RATED_FIRST
from evenedit.judges.batch_jobs import takes_batches
from evenedit.providers.prices import Prices
from evenedit.stats.disparity.power import Design, Labels, Power, labels_needed, power
from evenedit.study.study import Study

POWER_STEPS = 10
"""Gaps that the power simulation tries, no gap among them."""


@dataclass(frozen=True, slots=True)
class EditorLine:
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
class JudgeLine:
    """One judge's part of the work."""

    judge: str
    calls: int
    """Still to be made."""
    tokens: tuple[float, float] | None
    """In and out of one call; None where a judge of one's own uses none."""
    measured: bool
    """Whether the tokens were counted in stored replies; otherwise the price file assumes them."""
    usd: float | None
    """Price of what is left, asked now; None where it is not known."""
    usd_batch: float | None
    """The same by batch job; None where there are none, or the price is not known."""
    batch: bool
    """Whether the provider takes batch jobs."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Everything a run would do."""

    sources: int
    prompts: int
    lines: tuple[EditorLine, ...]
    judges: tuple[JudgeLine, ...]
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


def make_plan(study: Study, prices: Path | None = None) -> RunPlan:
    """Count without editing, rating or spending anything."""
    file, store = study.file, study.store
    sources = study.design.preview_sources()
    requests = study.design.planned(sources)
    section = file.sections.experiments.mitigation
    if section and not any(r.experiment == "mitigation" for r in requests):  # feature prompts are still to come
        baseline = design.diagnosis(file, sources)
        if section.choose in RATED_FIRST:  # which ones is not known yet; the count is what matters here
            cases = study.design.cases("mitigation", baseline, sources, section.cases)
        else:
            cases = study.design.mitigation_cases(baseline, sources)
        requests += design.mitigation(file, cases, dict.fromkeys(sources, ""))
    edits = {i: e for i, e in store.edits().items() if e.outcome is not Outcome.FAILED}
    charges = Prices.load(prices)
    lines = tuple(_lines(study, requests, edits, charges))
    assigned, survey = study.design.assignments(requests, study.design.judges()), file.sections.survey
    wanted = {r.id for r in requests}
    pictures = [e.image for e in edits.values() if e.image]
    sizes = [store.images.path(p).stat().st_size for p in pictures[:50] if store.images.path(p).is_file()]
    left = sum(line.edits - line.done for line in lines)
    return RunPlan(
        len(sources),
        len(file.prompts),
        lines,
        tuple(_judge_lines(study, assigned, charges)),
        len(assigned),
        sum(
            ident in wanted
            for rater, revision in {(s.rater.id, s.revision) for s in assigned}
            for ident in store.answered(rater, revision)
        ),
        survey.cases * survey.raters_per_item if survey else 0,
        mean(sizes) * left if sizes else None,
        charges.date,
        tuple(_notes(study)),
    )


def design_of(study: Study) -> Design | None:
    """The diagnosis as the power simulation sees it, its groups the races of the portraits; None without two groups."""
    file, sources = study.file, study.design.preview_sources()
    races = Counter(s.attributes.get("race", "") for s in sources.values())
    if file.sections.experiments.diagnosis is None or len(races) < 2:
        return None
    rates = len(file.rates) + 1  # and refusals
    return Design(
        faces=tuple(races.values()),
        prompts=len(file.prompts),
        seeds=min((len(e.seeds) for e in file.editors("diagnosis")), default=1),
        raters=max(1, len(file.sections.judges)),
        tests=rates * sum(_varies(sources, factor) for factor in ("race", "gender", "age")),
    )


def _varies(sources: Mapping[str, Source], factor: str) -> bool:
    return len({s.attributes.get(factor, "") for s in sources.values()}) > 1


def simulate_power(design: Design) -> tuple[Power, list[Labels]]:
    """How large a gap the design shows in 80 of 100 studies, and the labels people must give."""
    with Progress("simulating studies", POWER_STEPS) as progress:
        return power(design, step=progress.advance), list(labels_needed(design))


def probe(study: Study, count: int) -> None:
    """Make `count` edits with every editor, stored like all others, so that the plan knows how long one takes."""
    runner = study.runner()
    with study.store.locked():
        run_id = study.store.start_run({"probe": count})
        sources = runner.load_sources()
        requests = runner.request(sources)
        for section in study.file.sections.editors:
            runner.edit([r for r in requests if r.editor == section.id][:count], sources, run_id)
        study.store.finish_run(run_id)


def _lines(study: Study, requests: list[Request], edits: dict[str, Edit], charges: Prices) -> list[EditorLine]:
    executor = study.file.sections.executor
    sections = {e.id: e for e in study.file.sections.editors}
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
            EditorLine(
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


def _judge_lines(study: Study, assigned: Sequence[Assignment], charges: Prices) -> list[JudgeLine]:
    store, lines = study.store, []
    for section, rater in zip(study.file.sections.judges, study.design.judges(), strict=True):
        own = [s for s in assigned if s.rater.id == rater.id]
        answered = {revision: store.answered(rater.id, revision) for revision in {s.revision for s in own}}
        left = sum(answered[s.revision].get(s.request.id, Status.FAILED) is Status.FAILED for s in own)
        remote = plugins.is_remote("judges", section.kind)
        measured = store.tokens(rater.id)
        tokens = (measured or charges.assumed) if remote else None
        prices = [charges.tokens(section.kind, section.settings, batch=batch) for batch in (False, True)]
        usd, usd_batch = (
            None if price is None or (remote and tokens is None) else left * charges.reserve(price, tokens)
            for price in prices
        )
        jobs = takes_batches(rater.judge)
        lines.append(JudgeLine(rater.id, left, tokens, measured is not None, usd, usd_batch if jobs else None, jobs))
    return lines


def _notes(study: Study) -> list[str]:
    file = study.file
    notes = []
    for editor in file.sections.editors:
        memory = plugins.vram(editor.plugin)
        if memory:
            notes.append(f"{editor.id} needs about {memory} GB of GPU memory with the published settings (estimated)")
        if (
            plugins.is_remote("editors", editor.plugin)
            and not plugins.takes_seed(editor.plugin)
            and len(editor.seeds) > 1
        ):
            notes.append(f"{editor.id} takes no seed: several seeds are repeats, not reproducible draws")
    if file.sections.experiments.stereotype:
        able = {e.id for e in file.editors("stereotype")}
        left_out = ", ".join(e.id for e in file.sections.editors if e.id not in able)
        if left_out:
            notes.append(f"not in the stereotype experiment (one input image, or so configured): {left_out}")
    section = file.sections.experiments.mitigation
    if section and section.choose == "drift":
        notes.append(
            f"the mitigation cases are chosen among edits with observed drift once the diagnosis is rated: "
            f"at most {section.cases:,}, fewer if fewer drift"
        )
    if section and section.choose == "priority":
        notes.append("the mitigation cases are chosen by the judges' scores, once the diagnosis is rated")
    if section and not file.placebo:
        notes.append("no placebo arm: improvement cannot be told from regression to the mean")
    if file.sections.judges and not any(file.blind(j) for j in file.sections.judges):
        notes.append("judges are told the labels (published preset); a default study keeps them blind")
    if not file.sections.judges:
        what = "what instruments measure" if file.sections.instruments else "pictures and counts"
        notes.append(f"no judge: the report will show {what}, no scores")
    return notes
