"""The plan of a run, made before anything is edited: counts, hours, disk space, memory and money."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from PIL import Image

from evenedit.core import plugins
from evenedit.core.interfaces import Case
from evenedit.core.records import NULL_PAIR_EDITOR, Edit, Experiment, Outcome, Prompt, Request, Source, Status
from evenedit.design import requests as design
from evenedit.design.assignments import Assignment
from evenedit.design.study_design import RATED_FIRST
from evenedit.judges.batch_jobs import takes_batches
from evenedit.judges.feature_prompts import VLMExtractor, extractor_id
from evenedit.judges.prompt import render, render_picture, words_of
from evenedit.judges.raters import Call
from evenedit.protocol import Factor, Rubric, questions_for
from evenedit.providers.prices import Prices
from evenedit.run.memory import Machine, memory_note
from evenedit.run.models_in_use import model_notices, price_notices
from evenedit.run.preflight import instructions_of, machine_for, picture_size, preflight, remarks
from evenedit.stats.power.advice import PowerPlan
from evenedit.study.context import StudyContext
from evenedit.study.preregistration.seal import check_hypotheses

CHARACTERS = 4
"""Characters of a token of English words, about."""
SHORT_ANSWER = 60
"""Tokens of an answer about a single picture, which has no observations."""
MAIN_REVISION = "[0-9a-f]{8}"
"""A revision of main calls; those of other calls are longer."""


@dataclass(frozen=True, slots=True)
class EditorLine:
    """The edits of one editor under one condition."""

    experiment: str
    condition: str
    editor: str
    edits: int
    done: int
    seconds: float | None
    """Time that the remaining edits take at the speed measured so far; None before the first edit."""
    usd: float | None
    """Price of the remaining edits; 0 for an editor that costs nothing, None where the price is not known."""


@dataclass(frozen=True, slots=True)
class JudgeLine:
    """The calls of one judge about one block of questions."""

    judge: str
    calls: int
    """Calls that are still to be made."""
    tokens: tuple[float, float] | None
    """Tokens sent and received in one call; None for a judge that uses none."""
    measured: bool
    """Whether the tokens were counted in stored replies; otherwise the price file assumes them."""
    usd: float | None
    """Price of the remaining calls, made one by one; None where it is not known."""
    usd_batch: float | None
    """Price of the remaining calls by batch job; None where the provider has none or the price is not known."""
    batch: bool
    """Whether the provider takes batch jobs."""
    usd_call: float | None
    """Price of one call; None where it is not known."""
    block: str = "main"
    """What the calls are about: main, identity, separate or single pictures."""

    @property
    def title(self) -> str:
        """The judge, with what the calls are about where it is not the main call."""
        return self.judge if self.block == "main" else f"{self.judge}, {self.block}"


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Every edit, call and rating of a study, done or not."""

    sources: int
    prompts: int
    lines: tuple[EditorLine, ...]
    judges: tuple[JudgeLine, ...]
    extractors: tuple[JudgeLine, ...]
    """The descriptions of portraits that feature prompts need, one call each unless one must be asked for again."""
    judge_calls: int
    judge_calls_done: int
    human_ratings: int
    disk: float | None
    """Bytes that the remaining pictures will take; None before the first one."""
    prices_of: str
    """Date of the price file."""
    notes: tuple[str, ...]
    problems: Sequence[str] = ()
    """What would stop a run on this machine."""
    power: PowerPlan | None = None
    """What the design can show, where that was computed."""

    @property
    def edits(self) -> int:
        """All edits, done or not, without null pairs."""
        return sum(line.edits for line in self.lines if line.editor != NULL_PAIR_EDITOR)

    @property
    def null_pairs(self) -> int:
        """All null pairs, done or not."""
        return sum(line.edits for line in self.lines if line.editor == NULL_PAIR_EDITOR)

    @property
    def usd(self) -> float | None:
        """The price of all that is left, calls made one by one; None where a part of it is not known."""
        parts = [*(line.usd for line in self.lines), *(judge.usd for judge in (*self.judges, *self.extractors))]
        return None if None in parts else sum(part for part in parts if part is not None)

    def __str__(self) -> str:
        return "\n".join(_described(self))


def _described(plan: RunPlan) -> Iterator[str]:
    null = f", {plan.null_pairs:,} null pairs" if plan.null_pairs else ""
    yield f"{plan.sources} portraits, {plan.prompts} diagnostic prompts, {plan.edits:,} edits{null}\n"
    yield f"{'experiment':12}{'condition':11}{'editor':28}{'edits':>7}{'done':>7}{'time left':>14}{'US$ left':>12}"
    for line in plan.lines:
        left = "not timed" if line.seconds is None else duration(line.seconds)
        what = f"{line.experiment:12}{line.condition:11}{line.editor:28}"
        yield f"{what}{line.edits:>7,}{line.done:>7,}{left:>14}{_price(line.usd):>12}"
    yield f"\njudge calls: {plan.judge_calls:,} ({plan.judge_calls_done:,} done)"
    if plan.judges or plan.extractors:
        yield f"{'judge':40}{'calls left':>11}{'tokens of a call: in, out':>38}{'US$ now':>11}{'US$ batch':>11}"
    for judge in (*plan.extractors, *plan.judges):
        tokens = "none"
        if judge.tokens:
            tokens = f"{judge.tokens[0]:,.0f}, {judge.tokens[1]:,.0f} {'measured' if judge.measured else 'ASSUMED'}"
        batch = _price(judge.usd_batch) if judge.batch else "–"
        yield f"{judge.title:40}{judge.calls:>11,}{tokens:>38}{_price(judge.usd):>11}{batch:>11}"
    if plan.human_ratings:
        yield f"ratings by people: {plan.human_ratings:,}"
    disk = "not measured; try --probe 1" if plan.disk is None else f"{plan.disk / 1e9:.2f} GB"
    yield f"disk for the pictures still to come: {disk}"
    yield f"prices of {plan.prices_of}; check them before you spend"
    yield from (f"note: {note}" for note in plan.notes)
    yield from (f"a run would stop here: {problem}" for problem in plan.problems)
    if plan.power is not None:
        yield f"\n{plan.power}"


def _price(usd: float | None) -> str:
    return "not known" if usd is None else f"{usd:,.2f}"


def duration(seconds: float) -> str:
    """Seconds in words."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def make_plan(study: StudyContext, prices: Path | None = None, machine: Machine | None = None) -> RunPlan:
    """Return the plan of a study without editing, rating or spending anything.

    `machine` is the one that it is planned for; by default the one here.
    """
    file, store = study.file, study.store
    check_hypotheses(study)
    sources = study.design.preview_sources()
    requests = all_requests(study, sources)
    edits = {i: e for i, e in store.edits().items() if e.outcome is not Outcome.FAILED}
    charges = Prices.load(prices)
    lines = tuple(_lines(study, requests, edits, charges))
    judges, survey = study.design.judges(), file.sections.survey
    assigned = study.design.assignments(requests, judges, sources)
    wanted = {a.key for a in assigned}
    size = picture_size(store)
    left = sum(line.edits - line.done for line in lines)
    return RunPlan(
        len(sources),
        len(file.prompts),
        lines,
        tuple(_judge_lines(study, assigned, charges)),
        tuple(_extractor_lines(study, requests, charges)),
        len(assigned),
        sum(
            (rater, revision, ident) in wanted
            for rater, revision in {(s.rater.id, s.revision) for s in assigned}
            for ident in store.answered(rater, revision)
        ),
        survey.cases_of(survey.surveys[0]) * survey.raters_per_item if survey else 0,
        None if size is None else size * left,
        charges.date,
        (*_notes(study, charges, requests, machine or Machine.current()), *_question_notes(study, assigned, sources)),
        preflight(file, store, instructions_of([r for r in requests if r.id not in edits]), judges, left),
    )


def all_requests(study: StudyContext, sources: Mapping[str, Source]) -> list[Request]:
    """Return every request, including those of the mitigation once its feature prompts exist."""
    file, requests = study.file, study.design.planned(sources)
    section = file.sections.experiments.mitigation
    if section is None:
        return requests
    baseline = design.diagnosis(file, sources)
    if section.choose in RATED_FIRST and not study.store.cases(RATED_FIRST[section.choose]):
        # the cases are not known yet, only how many there will be
        cases = study.design.cases("mitigation", baseline, sources, section.cases)
    else:
        cases = study.design.mitigation_cases(baseline, sources)
    described = study.design.feature_texts(section)
    waiting = [case for case in cases if case.source_ids[0] not in described]
    return [*requests, *design.mitigation(file, waiting, dict.fromkeys(sources, ""))]


def portraits_by_level(sources: Mapping[str, Source], factor: Factor) -> Counter[str]:
    """Count portraits by level of a factor; a portrait without a label is not counted."""
    labels = (source.attributes.get(factor.name, "") for source in sources.values())
    return Counter(label for label in labels if label)


def probe(study: StudyContext, count: int) -> None:
    """Make `count` edits with every editor, stored like all others, so that the plan knows how long one takes."""
    runner = study.runner()
    with study.store.locked():
        run_id = study.store.start_run({"probe": count})
        sources = runner.load_sources(run_id)
        requests = runner.request(sources)
        for section in study.file.sections.editors:
            runner.edit([r for r in requests if r.editor == section.id][:count], sources, run_id)
        study.store.finish_run(run_id)


def _lines(study: StudyContext, requests: list[Request], edits: dict[str, Edit], charges: Prices) -> list[EditorLine]:
    executor = study.file.sections.executor
    sections = {e.id: e for e in study.file.sections.editors}
    seconds: dict[str, list[float]] = defaultdict(list)
    groups: dict[tuple[str, str, str], list[Request]] = defaultdict(list)
    for request in requests:
        groups[request.experiment.value, str(request.condition), request.editor].append(request)
        if request.id in edits:
            seconds[request.editor].append(edits[request.id].seconds)
    lines = []
    for (experiment, condition, editor), members in groups.items():
        done = sum(r.id in edits for r in members)
        left = len(members) - done
        speed = mean(seconds[editor]) if seconds[editor] else None
        section = sections.get(editor)
        price = charges.edit(section.plugin, section.settings) if section else 0.0  # EvenEdit makes null pairs
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


def _judge_lines(study: StudyContext, assigned: Sequence[Assignment], charges: Prices) -> list[JudgeLine]:
    store, lines = study.store, []
    for section, rater in zip(study.file.sections.judges, study.design.judges(), strict=True):
        blocks: dict[str, list[Assignment]] = {Call.MAIN.block: []}
        for assignment in (a for a in assigned if a.rater.id == rater.id):
            blocks.setdefault(assignment.call.block, []).append(assignment)
        for block, assignments in blocks.items():
            revisions = {s.revision for s in assignments}
            answered = {revision: store.answered(rater.id, revision) for revision in revisions}
            left = sum(answered[s.revision].get(s.subject, Status.FAILED) is Status.FAILED for s in assignments)
            remote = plugins.is_remote("judges", section.kind)
            measured = store.tokens(rater.id, revisions)
            tokens = (measured or _assumed(study.file.rubric, block, charges)) if remote else None
            prices = [charges.tokens(section.kind, section.settings, batch=batch) for batch in (False, True)]
            usd, usd_batch = (
                None if price is None or (remote and tokens is None) else charges.reserve(price, tokens)
                for price in prices
            )
            jobs = takes_batches(rater.judge)
            now, later = (None if each is None else left * each for each in (usd, usd_batch if jobs else None))
            lines.append(JudgeLine(rater.id, left, tokens, measured is not None, now, later, jobs, usd, block))
    return lines


def _assumed(rubric: Rubric, block: str, charges: Prices) -> tuple[float, float] | None:
    """Return the tokens of a call that none was measured of: of a single picture, one of two and few words."""
    if charges.assumed is None or block != Call.SEE.block:
        return charges.assumed
    blank, one = Image.new("RGB", (1, 1)), Prompt("", "", "")
    one_picture = render_picture(Case((), blank, one, ""), rubric.seen, image_size=1)
    both = render(Case([blank], blank, one, ""), questions_for(Experiment.DIAGNOSIS, one), image_size=1)
    words, usual = (sum(map(len, words_of(ask)[1])) + len(ask.system) for ask in (one_picture, both))
    return words / CHARACTERS + (charges.assumed[0] - usual / CHARACTERS) / 2, float(SHORT_ANSWER)


def _question_notes(
    study: StudyContext, assigned: Sequence[Assignment], sources: Mapping[str, Source]
) -> Iterator[str]:
    """Yield what declared questions cost, and what they do not give."""
    rubric = study.file.rubric
    for judge in study.design.judges():
        former = [r for r in study.store.revisions(judge.id) - {judge.revision} if re.fullmatch(MAIN_REVISION, r)]
        rated = {ident for r in former for ident, s in study.store.answered(judge.id, r).items() if s != Status.FAILED}
        current = study.store.answered(judge.id, judge.revision)
        main_calls = [a for a in assigned if a.rater.id == judge.id and a.call is Call.MAIN]
        repeated = sum(a.subject in rated and a.subject not in current for a in main_calls)
        if repeated:
            added = ", ".join(spec.id for spec in rubric.declared_main)
            hint = f'; call = "separate" of a new question ({added}) asks only that one' if added else ""
            changed = "its questions or settings changed since it rated them"
            yield f"{judge.id} asks {repeated:,} edits again: {changed}{hint}"
    for spec in rubric.declared:
        if not spec.rates and spec.row.about != "picture":
            yield f"question '{spec.id}' has no rate: it gives no finding"
    if rubric.declared and (tests := count_tests(study, sources)):
        yield f"about {tests:,} tests share one family: each further rate raises every adjusted p-value"


def count_tests(study: StudyContext, sources: Mapping[str, Source]) -> int:
    """Return about how many gaps and shifts of the diagnosis are tested: per editor, rate and factor."""
    rubric = study.file.rubric
    factors = sum(len(portraits_by_level(sources, factor)) > 1 for factor in study.file.factors)
    gaps = sum(rubric.words(rate).gap for rate in rubric.rates) + 1  # and refusals
    shifts = len(rubric.one_sided) + len(rubric.two_sided)
    return len(study.file.editors("diagnosis")) * (gaps * factors + shifts)


def _extractor_lines(study: StudyContext, requests: Sequence[Request], charges: Prices) -> Iterator[JudgeLine]:
    """Return, per extractor that calls a model, the mitigation portraits not described yet."""
    section = study.file.sections.experiments.mitigation
    wanted = {r.source_ids[0] for r in requests if r.experiment is Experiment.MITIGATION}
    for plugged in section.extractors if section else ():
        extractor = plugins.build("extractors", plugged.kind, plugged.settings)
        if isinstance(extractor, VLMExtractor):
            known = study.store.features(extractor_id(plugged.kind, plugged.settings))
            left = len(wanted - known.keys())
            price = charges.describing(plugged.settings)
            usd = None if price is None or charges.assumed is None else left * charges.reserve(price, None)
            yield JudgeLine(f"describe: {extractor.model.model}", left, charges.assumed, False, usd, None, False, None)


def _notes(study: StudyContext, charges: Prices, requests: Sequence[Request], machine: Machine) -> list[str]:
    file = study.file
    notes = [*model_notices(file, charges), *price_notices(file, charges)]
    instructions = instructions_of(requests)
    notes += remarks(file, instructions)
    for editor in file.sections.editors:
        settings, share = file.located(editor.settings), machine_for(file, editor, machine)
        memory = memory_note(editor.plugin, settings, share, len(instructions.get(editor.id, ())))
        if memory:
            notes.append(f"{editor.id} {memory[1]}")
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
        notes.append("no placebo arm: improvement cannot be distinguished from regression to the mean")
    if file.sections.judges and not any(file.blind(j) for j in file.sections.judges):
        notes.append("judges are shown the labels (published preset); in a default study they are blind to them")
    if not file.sections.judges:
        contents = "the measurements of instruments" if file.sections.instruments else "pictures and counts"
        notes.append(f"no judge: the report will show {contents}, no scores")
    return notes
