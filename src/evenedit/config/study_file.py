"""`study.toml`, read once and checked in full: one line per problem, naming the key and the fix."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenedit.core import plugins
from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.records import SIMULATED, Prompt, is_simulated
from evenedit.protocol import DEFAULT_RATES, FACTORS, QUESTIONS, Factor, PromptSet, Rate, load_prompts
from evenedit.protocol.ensemble import RULES, RULES_OF
from evenedit.protocol.prompts import FLOOR, merge

FILE = "study.toml"
Missing = Literal["exclude", "neutral-3"]
Preset = Literal["default", "published"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class About(_Section):
    """[study]: what this is."""

    title: str
    preset: Preset = "default"
    seed: int = 42
    """Draws the sampled cases and the portrait pairs."""


class StoreSection(_Section):
    """[store]: where results live."""

    url: str | None = None
    """SQLAlchemy URL of a PostgreSQL database; SQLite in the study folder when absent."""
    images: str | None = None
    """Where pictures lie: a folder or a URL that all workers reach; `images` in the study folder when absent."""


class Plugged(_Section):
    """Anything found by entry point: a kind and its settings."""

    kind: str
    settings: dict[str, Any] = {}


class FactorSection(_Section):
    """[[factors]]: what portraits are labelled and grouped by; race, gender and age when left out."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    """The column of labels.csv that holds it."""
    title: str = ""
    """How tables and pages print it; the name when left out."""
    levels: list[str] = Field(min_length=2)
    """Every label there can be, in the order of tables and axes."""
    ordered: bool = False
    """Whether the order of the levels means something: adds a trend estimate."""


class CurationSection(_Section):
    """[curation]: candidates among which reviewers choose the portraits in the web app."""

    pools: str = "pools"
    """Folder of the candidate pools, relative to the study's."""
    out: str = "portraits"
    """Folder the finalised set is written to: the `path` of [sources]."""
    faces_per_cell: int = Field(default=1, ge=1)


class PromptSection(_Section):
    """[prompts]: which prompts the diagnosis uses."""

    sets: list[str] = ["diagnostic"]
    include: list[str] | None = None
    """Ids or aliases to keep; all when absent."""


class Diagnosis(_Section):
    """[experiments.diagnosis]: every source × prompt × editor."""

    floor: bool = False
    """Also ask each editor to return every portrait unchanged: its own drift without any request."""


class Mitigation(_Section):
    """[experiments.mitigation]: the feature prompt on sampled cases."""

    cases: int = Field(default=500, ge=1)
    choose: Literal["balanced", "strata", "priority", "drift"] = "balanced"
    """balanced, strata: evenly over editors and groups; priority: what the judges' scores say to look at first; drift:
    among edits that were rated as drifted. The last two are chosen once the diagnosis is rated."""
    placebo: bool | None = None
    """Baseline again with another seed; on by default, off under the published preset."""
    pairwise: bool = False
    """Also ask which output keeps the identity better, baseline or mitigated, in both orders."""
    extractor: Plugged
    stand_in: Plugged | None = None
    """A second extractor describes every portrait too; its words are used where the first gave none or flagged ones."""

    @property
    def extractors(self) -> list[Plugged]:
        """Who describes the portraits, the first one first."""
        return [self.extractor, *([self.stand_in] if self.stand_in else [])]


class Stereotype(_Section):
    """[experiments.stereotype]: two portraits, one occupation."""

    prompts: str = "winobias"
    include: list[str] | None = None
    swapped: bool | None = None
    """The pronoun-swapped control; on by default, off under the published preset."""


class Experiments(_Section):
    """[experiments]: each one runs when its table is present."""

    diagnosis: Diagnosis | None = None
    mitigation: Mitigation | None = None
    stereotype: Stereotype | None = None


class EditorSection(_Section):
    """[[editors]]: what is audited."""

    id: str
    kind: str | None = None
    """The installed editor to use; the id when absent."""
    seeds: list[int] = Field(default=[42], min_length=1)
    settings: dict[str, Any] = {}
    experiments: list[Literal["diagnosis", "mitigation", "stereotype"]] | None = None
    """The experiments it takes part in; all it can when absent."""

    @property
    def plugin(self) -> str:
        """Name of the installed editor."""
        return self.kind or self.id


class JudgeSection(_Section):
    """[[judges]]: who scores, primary first."""

    id: str
    kind: str
    blind: bool | None = None
    """No labels are told; on by default, off under the published preset."""
    settings: dict[str, Any] = {}


class InstrumentSection(_Section):
    """[[instruments]]: what is measured in pixels, a rater of its own."""

    id: str
    kind: str
    editors: list[str] | None = None
    """The editors whose outputs it measures; all when absent."""
    settings: dict[str, Any] = {}


class EnsembleSection(_Section):
    """[ensemble]: how the judges' scores become one."""

    diagnosis: str = "diagnosis"
    mitigation: str = "mitigation"
    stereotype: str = "stereotype"
    missing: Missing | None = None
    """What to do when no judge scored: by default exclude; neutral-3 under the published preset."""
    review: Literal["shown", "settles"] = "shown"
    """What reviewers settled is shown and changes no score, or takes the place of the judges' score."""
    reviewers: Literal[1, 2] = 1
    """How many look at each case; two are blind to each other until both are in."""


class Threshold(_Section):
    """[thresholds]: a rate's cut."""

    at_least: int | None = Field(default=None, ge=1, le=5)
    at_most: int | None = Field(default=None, ge=1, le=5)


class EndingSection(_Section):
    """[survey.endings.NAME]: what a participant takes home, by how the visit ended."""

    code: str = ""
    """Completion code; one of our own when left out."""
    redirect: str = ""
    """Where to go; {code}, {participant}, {study} and {session} are filled in. Empty: the code is shown instead."""


class PaySection(_Section):
    """[survey.pay]: what participants get, and what the platform takes."""

    currency: str = "USD"
    per_task: float = Field(default=0.0, ge=0)
    minutes_per_task: float = Field(default=30.0, gt=0)
    minimum_per_hour: float = Field(default=8.0, ge=0)
    """The planner warns below this; Prolific's own floor was 8 US dollars (6 pounds) when this was written."""
    fee: float = Field(default=1 / 3, ge=0)
    """The platform's fee as a share of the pay; Prolific's for academics was a third when this was written."""


class ExclusionSection(_Section):
    """[survey.exclude]: whose answers are left out, stated before the first answer is seen."""

    instructed_failed: int = Field(default=2, ge=1)
    """So many failed instructed checks."""
    gold_below: float = Field(default=0.8, ge=0, le=1)
    """Share of right answers on gold items."""
    seconds_per_answer: float = Field(default=1.0, ge=0)
    """Median time per answer: ten answers about a pair in less than ten seconds are not looked at."""
    straight_line: float = Field(default=0.9, gt=0, le=1)
    """Share of items with one and the same answer to every question; above it."""
    agreement_below: float | None = Field(default=None, ge=-1, le=1)
    """Correlation with the mean of the others; off by default, since disagreement may be honest."""


class PlatformSection(_Section):
    """[survey.platform]: how participants are introduced."""

    kind: Literal["prolific", "panel", "invitation"] = "invitation"
    participant: str = "PROLIFIC_PID"
    """URL parameter that holds the participant's id; the session and study likewise."""
    session: str = "SESSION_ID"
    study: str = "STUDY_ID"
    study_ids: list[str] = []
    """Ids of our study on the platform; others are turned away. Empty: any."""
    signed: bool = False
    """Prolific: only links that carry its signature (secure external URLs)."""
    origin: str = ""
    """The address participants know us by, https://…; a signature must be meant for it."""
    api: str = "https://api.prolific.com/api/v1"


class SurveySection(_Section):
    """[survey]: which cases people rate, how they are asked, and simulated people for a dry run."""

    surveys: list[Literal[1, 2, 3]] = Field(default=[1], min_length=1)
    """1: five axes for each output; 2: which output keeps the identity; 3: who got the role."""
    sampler: Literal["balanced", "strata", "priority"] = "balanced"
    population: Literal["diagnosis", "mitigation"] = "diagnosis"
    """Which cases can be drawn: all of the diagnosis, or only those that have a mitigated output beside them."""
    cases: int = Field(default=500, ge=1)
    raters_per_item: int = Field(default=3, ge=1)
    items_per_task: int = Field(default=50, ge=1)
    """Pages of one task, gold items included."""
    gold: str | None = None
    """A CSV of known answers, or "truth" in a study whose editors are all simulated; no gold items when left out."""
    gold_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of a task's items that are gold."""
    instructed: int = Field(default=2, ge=0)
    """Instructed checks per task, beside its items."""
    seat_minutes: float = Field(default=120.0, gt=0)
    """A seat comes back after so many minutes without an answer."""
    dashboard: bool = False
    """Participants pick their task, as published; by default they are given the next seat."""
    languages: list[Literal["en", "ko"]] = Field(default=["en", "ko"], min_length=1)
    quotas: dict[Literal["disagreement", "drift", "erasure", "skin", "routine"], float] = {}
    """Shares of the priority sampler."""
    platform: PlatformSection = PlatformSection()
    pay: PaySection = PaySection()
    exclude: ExclusionSection = ExclusionSection()
    endings: dict[
        Literal["completed", "no_consent", "no_seat", "screened_out", "failed_checks", "withdrawn"], EndingSection
    ] = {}
    simulated_people: int = Field(default=0, ge=0)
    settings: dict[str, Any] = {}
    """How simulated people err: the settings of the simulated judge."""


class StatisticsSection(_Section):
    """[statistics]: intervals and tests."""

    draws: int = Field(default=2000, ge=100)
    permutations: int = Field(default=4999, ge=99)
    seed: int = 20240
    confidence: float = Field(default=0.95, gt=0.5, lt=1)


class ExecutorSection(_Section):
    """[executor]: where edits run."""

    kind: Literal["local", "ray"] = "local"
    workers: int = Field(default=2, ge=1)
    """Threads that edit or rate on this machine's CPU."""
    calls: int = Field(default=16, ge=1)
    """Calls to somebody else's service under way at once: to each judge, and to an editor."""
    processes: int = Field(default=0, ge=0)
    """Processes that edit, one GPU each where there are any; 0 = edit in this process, or one per GPU."""
    retries: int = Field(default=2, ge=0)
    address: str = "auto"
    """Ray: address of the cluster; "" starts one on this machine."""
    num_gpus: float = Field(default=0.0, ge=0)
    """Ray: GPUs per actor."""
    num_cpus: float = Field(default=1.0, ge=0)
    """Ray: cores per actor."""


class CacheSection(_Section):
    """[cache]: replies of judges kept by content, so that the same question is not paid for twice."""

    use: bool = True
    folder: str = "cache"
    """In the study's folder; a path that several studies name is shared by them."""


class Sections(_Section):
    """The tables of study.toml."""

    study: About
    store: StoreSection = StoreSection()
    sources: Plugged
    factors: list[FactorSection] = []
    curation: CurationSection | None = None
    prompts: PromptSection = PromptSection()
    experiments: Experiments = Experiments()
    editors: list[EditorSection] = []
    judges: list[JudgeSection] = []
    instruments: list[InstrumentSection] = []
    ensemble: EnsembleSection = EnsembleSection()
    thresholds: dict[str, Threshold] = {}
    survey: SurveySection | None = None
    statistics: StatisticsSection = StatisticsSection()
    executor: ExecutorSection = ExecutorSection()
    cache: CacheSection = CacheSection()


@dataclass(frozen=True, slots=True)
class StudyFile:
    """A whole study as its file describes it."""

    folder: Path
    sections: Sections
    prompts: PromptSet
    """Prompts of the diagnosis, after `include`."""
    wino: PromptSet
    """Prompts of the stereotype experiment; empty without it."""

    @classmethod
    def load(cls, where: Path) -> StudyFile:
        """Read and check `study.toml` in a folder (or the file itself)."""
        path = where if where.suffix == ".toml" else where / FILE
        if not path.is_file():
            raise EvenEditError(f"no study at {path}. Try: evenedit new {where}")
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise EvenEditError(f"{path} is not valid TOML: {error}") from None
        return cls.parse(data, path.parent, str(path))

    @classmethod
    def parse(cls, data: Mapping[str, Any], folder: Path, where: str = FILE) -> StudyFile:
        """Check a study given as nested tables."""
        try:
            file = Sections.model_validate(data)
        except ValidationError as error:
            raise EvenEditError(*(f"{where}: {line}" for line in _explain(error))) from None
        found = list(_problems(file))
        prompts = wino = PromptSet("none", ())
        try:
            prompts = _chosen(merge(load_prompts(s, folder) for s in file.prompts.sets), file.prompts.include)
        except EvenEditError as error:
            found += [f"prompts: {line}" for line in error.problems]
        if file.experiments.stereotype:
            section = file.experiments.stereotype
            try:
                wino = _chosen(load_prompts(section.prompts, folder), section.include)
                found += [
                    f"experiments.stereotype: prompt {p.id} needs occupation and coded_gender"
                    for p in wino
                    if not (p.occupation and p.coded_gender)
                ]
            except EvenEditError as error:
                found += [f"experiments.stereotype: {line}" for line in error.problems]
        if found:
            raise EvenEditError(*(f"{where}: {line}" for line in found))
        return cls(folder, file, prompts, wino)

    @property
    def factors(self) -> tuple[Factor, ...]:
        """What portraits are labelled and grouped by."""
        declared = self.sections.factors
        return tuple(Factor.of(f.name, f.levels, title=f.title, ordered=f.ordered) for f in declared) or FACTORS

    @property
    def published(self) -> bool:
        """Whether the study does exactly what the paper did."""
        return self.sections.study.preset == "published"

    @property
    def placebo(self) -> bool:
        """Whether the mitigation experiment has its placebo arm."""
        section = self.sections.experiments.mitigation
        return section is not None and _or(section.placebo, not self.published)

    @property
    def swapped(self) -> bool:
        """Whether the stereotype experiment has its pronoun-swapped control."""
        section = self.sections.experiments.stereotype
        return section is not None and _or(section.swapped, not self.published)

    def blind(self, judge: JudgeSection) -> bool:
        """Whether this judge is kept from the labels."""
        return _or(judge.blind, not self.published)

    @property
    def missing(self) -> Missing:
        """What an edit gets that no judge scored."""
        return self.sections.ensemble.missing or ("neutral-3" if self.published else "exclude")

    @property
    def rates(self) -> dict[str, Rate]:
        """The rates under this study's thresholds."""
        return DEFAULT_RATES | {
            name: Rate(name, DEFAULT_RATES[name].question, t.at_least, t.at_most)
            for name, t in self.sections.thresholds.items()
        }

    @property
    def hash(self) -> str:
        """Names the study's content, whatever its formatting."""
        body = self.sections.model_dump(mode="json", exclude={"store", "executor", "cache", "curation"})
        if not body["factors"]:  # a table that came later does not rename the studies that leave it out
            del body["factors"]
        return digest([body, [p.text for p in self.prompts], [p.text for p in self.wino]])

    def located(self, settings: Mapping[str, Any]) -> dict[str, Any]:
        """Settings for use: a `path` in study.toml is relative to the study's folder."""
        if "path" not in settings:
            return dict(settings)
        return {**settings, "path": str(self.folder / settings["path"])}

    def editors(self, experiment: str) -> list[EditorSection]:
        """The editors that take part in an experiment."""
        return [
            e
            for e in self.sections.editors
            if (e.experiments is None or experiment in e.experiments)
            and (experiment != "stereotype" or plugins.images_taken(e.plugin) >= 2)
        ]

    def prompt(self, prompt_id: str) -> Prompt:
        """The prompt with this id, whichever experiment uses it."""
        return next(p for s in (self.prompts, self.wino, (FLOOR,)) for p in s if p.id == prompt_id)


def _or(value: bool | None, default: bool) -> bool:
    return default if value is None else value


def _chosen(prompts: PromptSet, include: list[str] | None) -> PromptSet:
    if include is None:
        return prompts
    if not include:
        raise EvenEditError("include is empty; name at least one prompt or leave the key out")
    wanted = {prompt.id for prompt in prompts.resolve_all(include).values()}
    return PromptSet(prompts.id, tuple(p for p in prompts if p.id in wanted))


def _problems(file: Sections) -> Iterator[str]:
    """Everything that types alone cannot tell."""
    if not file.editors and file.curation is None:  # portraits may be curated before there is an editor
        yield "editors: none is given; add [[editors]]"
    if (file.editors or file.curation is None) and not any(
        (file.experiments.diagnosis, file.experiments.mitigation, file.experiments.stereotype)
    ):
        yield "experiments: none is asked for; add [experiments.diagnosis]"
    if file.experiments.mitigation and not file.experiments.diagnosis:
        yield "experiments.mitigation needs [experiments.diagnosis]: its baseline comes from there"
    yield from _factor_problems(file)
    for name, section in (("sources", file.sources), *_extractors(file)):
        group = "sources" if name == "sources" else "extractors"
        yield from (f"{name}: {p}" for p in plugins.problems(group, section.kind, section.settings))
    for group, key, rows in (
        ("editors", "editors", [(e.id, e.plugin, e.settings) for e in file.editors]),
        ("judges", "judges", [(j.id, j.kind, j.settings) for j in file.judges]),
        ("instruments", "instruments", [(i.id, i.kind, i.settings) for i in file.instruments]),
    ):
        seen: set[str] = set()
        for number, (ident, kind, settings) in enumerate(rows):
            label = f"{key}[{number}] '{ident}'"
            if ident in seen:
                yield f"{label}: the id is used twice; give each its own"
            seen.add(ident)
            wrong = plugins.problems(group, kind, settings)
            yield from (f"{label}: {p}" for p in wrong)
            if not wrong:
                try:
                    plugins.build(group, kind, settings)
                except (EvenEditError, TypeError, ValueError) as error:
                    yield f"{label}: {error}"
                yield from _honesty(group, label, ident, kind, settings)
    for editor in file.editors:
        if "stereotype" in (editor.experiments or ()) and _takes_one_image(editor):
            yield (
                f"editors '{editor.id}' takes one input image, the stereotype experiment needs two; "
                "remove 'stereotype' from its experiments"
            )
        if len(set(editor.seeds)) < len(editor.seeds):
            yield f"editors '{editor.id}': a seed is listed twice"
    for instrument in file.instruments:
        editors = {editor.id for editor in file.editors}
        for name in set(instrument.editors or ()) - editors:
            yield f"instruments '{instrument.id}': there is no editor '{name}'{plugins.suggest(name, editors)}"
    for name, cut in file.thresholds.items():
        if name not in DEFAULT_RATES:
            yield f"thresholds: unknown rate '{name}'{plugins.suggest(name, DEFAULT_RATES)}"
        elif (cut.at_least is None) == (cut.at_most is None):
            yield f"thresholds.{name}: give either at_least or at_most"
    for experiment, known in RULES_OF.items():
        rule = getattr(file.ensemble, experiment)
        if rule not in RULES:
            yield f"ensemble.{experiment}: unknown rule '{rule}'{plugins.suggest(rule, RULES)}"
        elif rule not in known:
            yield f"ensemble.{experiment}: rule '{rule}' is for other questions; use one of: {', '.join(known)}"
        elif rule == "secondary" and len(file.judges) == 1:
            yield f"ensemble.{experiment}: rule 'secondary' needs two judges; the study has one"
    if file.survey and file.survey.platform.signed and not file.survey.platform.origin:
        yield "survey.platform.signed needs survey.platform.origin: the https:// address that participants open"
    if file.store.url and not file.store.url.startswith(("postgresql://", "postgresql+psycopg://")):
        yield "store.url: only postgresql:// is supported; leave it out for SQLite in the study folder"


RESERVED = frozenset(
    {"request_id", "experiment", "condition", "editor", "source_id", "prompt_id", "seed", "outcome", "judge", "status"}
    | {"file", "id", "origin", "source", "edited", "prompt", "category", "priority", "rater", *QUESTIONS}
    | {"q", "sort", "page", "review", "people", "face"}  # of the gallery's addresses
)
"""Columns and filters that there are already: no factor can have such a name."""


def _factor_problems(file: Sections) -> Iterator[str]:
    names = [f.name for f in file.factors]
    for factor in file.factors:
        if factor.name in RESERVED:
            yield f"factors '{factor.name}': tables have a column of that name already; choose another"
        if names.count(factor.name) > 1:
            yield f"factors '{factor.name}': the name is used twice"
        twice = sorted({level for level in factor.levels if factor.levels.count(level) > 1})
        if twice or "" in factor.levels:
            yield f"factors '{factor.name}': level '{(twice or [''])[0]}' is {'listed twice' if twice else 'empty'}"
    gender = next((f for f in file.factors if f.name == "gender"), None)
    if file.experiments.stereotype and file.factors and (gender is None or set(gender.levels) != {"Male", "Female"}):
        yield (
            "experiments.stereotype shows one person labelled Male and one labelled Female, so it needs a factor "
            "'gender' with the levels Male and Female; add it to [[factors]], or remove [experiments.stereotype]"
        )


def _takes_one_image(editor: EditorSection) -> bool:
    return editor.plugin in plugins.installed("editors") and plugins.images_taken(editor.plugin) < 2


def _extractors(file: Sections) -> list[tuple[str, Plugged]]:
    section = file.experiments.mitigation
    names = ("experiments.mitigation.extractor", "experiments.mitigation.stand_in")
    return list(zip(names, section.extractors, strict=False)) if section else []


def _honesty(group: str, label: str, ident: str, kind: str, settings: Mapping[str, Any]) -> Iterator[str]:
    # A model of `evenedit dev fake-provider` says by its name that it is none.
    simulated = plugins.is_simulated(group, kind) or is_simulated(str(settings.get("model", "")))
    if simulated and not is_simulated(ident):
        yield f"{label}: is simulated, so its id must begin with '{SIMULATED}': try '{SIMULATED}{ident}'"
    if not simulated and is_simulated(ident):
        yield f"{label}: is not simulated; an id that begins with '{SIMULATED}' would mislead"


def _explain(error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        where = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in problem["loc"]).lstrip(".")
        kind, given = problem["type"], problem["input"]
        if kind == "extra_forbidden":
            *parents, key = problem["loc"]
            yield f"unknown key '{where}'{plugins.suggest(str(key), _keys(parents))}"
        elif kind == "missing":
            yield f"'{where}' is missing; it is needed"
        else:
            yield f"'{where}' is {given!r}; {problem['msg'][0].lower()}{problem['msg'][1:]}"


def _keys(parents: list[Any]) -> list[str]:
    """The keys allowed at a place of the file."""
    model: Any = Sections
    for part in parents:
        if isinstance(part, int):
            continue
        annotation = model.model_fields[part].annotation
        nested = [a for a in (annotation, *_args(annotation)) if isinstance(a, type) and issubclass(a, BaseModel)]
        if not nested:
            return []
        model = nested[0]
    return list(model.model_fields)


def _args(annotation: Any) -> list[Any]:
    return [inner for arg in get_args(annotation) for inner in (arg, *_args(arg))]
