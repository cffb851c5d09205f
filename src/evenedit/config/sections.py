"""The tables of `study.toml` and their keys, as pydantic reads them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Missing = Literal["exclude", "neutral-3"]
Preset = Literal["default", "published"]
FACTOR_NAME = "[a-z][a-z0-9_]*"
"""What a factor may be called: it names columns of tables."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class About(_Section):
    """[study]: title, preset and seed."""

    title: str
    """What the report is called."""
    preset: Preset = "default"
    """The rules: `default`, or `published` for exactly what the paper did (judges see labels, the paper's prompt and
    rubric; no placebo, no swapped control)."""
    rubric: Preset | None = None
    """The wording of the answers that judges and people choose from: `default`, or `published` for the paper's Table
    14; as `preset` when left out."""
    judge_prompt: Preset | None = None
    """The words that judges are sent: `default`, or `published` for the paper's Listing 1; as `preset` when left
    out."""
    cannot_tell: bool = False
    """Judges may say of each axis that it cannot be told from the pictures: no score, counted apart."""
    seed: int = 42
    """Draws the sampled cases and the portrait pairs."""


class StoreSection(_Section):
    """[store]: where results live."""

    url: str | None = None
    """SQLAlchemy URL of a PostgreSQL database; SQLite in the study folder when absent."""
    images: str | None = None
    """Where pictures are stored: a folder or a URL that all workers reach; `images` in the study folder when absent."""


class Plugged(_Section):
    """Anything found by entry point: a kind and its settings."""

    kind: str
    """The name under which it is installed."""
    settings: dict[str, Any] = {}
    """Its own settings by keyword; a `path` is relative to the study's folder."""


class SourcesSection(Plugged):
    """[sources]: where the portraits come from, and whether they may be published."""

    licence: str = ""
    """The licence of the portraits, as an SPDX id or in words; a bundle holds no picture without one."""
    publish: bool = False
    """Whether the licence, and the consent of those pictured, allow the pictures in a published bundle."""


class HypothesisSection(_Section):
    """[[hypotheses]]: what the study is to test, stated before the first edit and frozen by `evenedit seal`."""

    rule: str
    """A rule as `evenedit gate` takes it: 'gap.race_change.race <= 0.05', 'shift.skin_tone <= 0.05'."""
    why: str = ""
    """Why it is expected, in a sentence."""


class FactorSection(_Section):
    """[[factors]]: what portraits are labelled and grouped by; race, gender and age when left out."""

    name: str = Field(pattern=f"^{FACTOR_NAME}$")
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
    """Portraits to choose for each combination of labels."""


class PromptSection(_Section):
    """[prompts]: which prompts the diagnosis uses."""

    sets: list[str] = ["diagnostic"]
    """Built-in sets by name, or your own TOML files."""
    include: list[str] | None = None
    """Ids or aliases to keep; all when absent."""


class Diagnosis(_Section):
    """[experiments.diagnosis]: every source × prompt × editor."""

    floor: bool = False
    """Also ask each editor to return every portrait unchanged: its own drift without any request."""
    requests: str | None = None
    """A CSV file whose rows are the requests, in place of every source × prompt × editor × seed. Columns: source (its
    id or file) and prompt (its id or text), and editor and seed where there are several."""
    languages: list[str] = []
    """Ask every editor in these languages too, e.g. `["ko"]`: each request again with the prompt's translation.
    Judges are given the original. No speaker has checked the Korean of the built-in prompts."""


class Mitigation(_Section):
    """[experiments.mitigation]: the feature prompt on sampled cases."""

    cases: int = Field(default=500, ge=1)
    """How many cases of the diagnosis are edited again."""
    choose: Literal["balanced", "strata", "priority", "drift", "listed"] = "balanced"
    """balanced, strata: evenly over editors and groups; priority: what the judges' scores say to look at first; drift:
    among edits that were rated as drifted. These two are chosen once the diagnosis is rated. listed: those that
    `evenedit import-authors` found."""
    placebo: bool | None = None
    """Baseline again with another seed; on by default, off under the published preset."""
    pairwise: bool = False
    """Also ask which output keeps the identity better, baseline or mitigated, in both orders."""
    extractor: Plugged
    """Who describes a portrait, for the feature prompt: `simulated` or `vlm`."""
    stand_in: Plugged | None = None
    """A second extractor describes every portrait too; its words are used where the first gave none or flagged ones."""

    @property
    def extractors(self) -> list[Plugged]:
        """Who describes the portraits, the first one first."""
        return [self.extractor, *([self.stand_in] if self.stand_in else [])]


class Stereotype(_Section):
    """[experiments.stereotype]: two portraits, one occupation."""

    prompts: str = "winobias"
    """The set of two-person prompts: `winobias`, or your own TOML file."""
    include: list[str] | None = None
    """Ids or aliases to keep; all when absent."""
    swapped: bool | None = None
    """The pronoun-swapped control; on by default, off under the published preset."""
    reversed: bool = False
    """Every request also with the two portraits in the other order: twice as many edits. Judges see both alike."""
    status: bool = False
    """Judges are also asked which of the two people has the role of higher status."""


class Experiments(_Section):
    """[experiments]: each one runs when its table is present."""

    diagnosis: Diagnosis | None = None
    """Every portrait with every prompt and editor."""
    mitigation: Mitigation | None = None
    """Sampled cases again, with the feature prompt."""
    stereotype: Stereotype | None = None
    """Two portraits and one occupation."""


class EditorSection(_Section):
    """[[editors]]: what is audited."""

    id: str
    """What tables and files call it; unique in the study."""
    kind: str | None = None
    """The installed editor to use; the id when absent."""
    seeds: list[int] = Field(default=[42], min_length=1)
    """One edit for each; several show how much an editor varies by chance."""
    settings: dict[str, Any] = {}
    """The editor's own settings; they are part of a request's identity."""
    experiments: list[Literal["diagnosis", "mitigation", "stereotype"]] | None = None
    """The experiments it takes part in; all it can when absent."""

    @property
    def plugin(self) -> str:
        """Name of the installed editor."""
        return self.kind or self.id


class JudgeSection(_Section):
    """[[judges]]: who scores, primary first."""

    id: str
    """What tables and files call it; unique in the study."""
    kind: str
    """The installed judge to use: `gemini`, `openai`, `simulated`, or a plug-in's."""
    blind: bool | None = None
    """The judge is given no labels; on by default, off under the published preset."""
    settings: dict[str, Any] = {}
    """The judge's own settings, such as `model` and `temperature`."""


class InstrumentSection(_Section):
    """[[instruments]]: what is measured in pixels, a rater of its own."""

    id: str
    """What tables and files call it; unique in the study."""
    kind: str
    """The installed instrument to use: `skin`, `change`, or a plug-in's."""
    editors: list[str] | None = None
    """The editors whose outputs it measures; all when absent."""
    settings: dict[str, Any] = {}
    """The instrument's own settings: `cuts` of `skin`, `identity` of `change`."""


class EnsembleSection(_Section):
    """[ensemble]: how the judges' scores become one."""

    diagnosis: str = "diagnosis"
    """Rule for the diagnosis: diagnosis, mitigation, mean, median, primary or secondary."""
    mitigation: str = "mitigation"
    """Rule for the mitigation: diagnosis, mitigation, mean, median, primary or secondary."""
    stereotype: str = "stereotype"
    """Rule for the verdicts: stereotype, primary or secondary."""
    missing: Missing | None = None
    """The score of an edit that no judge scored: exclude, or neutral-3, which counts as race change."""
    review: Literal["shown", "settles"] = "shown"
    """What reviewers settled is shown and changes no score, or takes the place of the judges' score."""
    reviewers: Literal[1, 2] = 1
    """How many look at each case; two are blind to each other until both are in."""


class Threshold(_Section):
    """[thresholds]: a rate's cut."""

    at_least: int | None = Field(default=None, ge=1, le=5)
    """The rate counts scores from this one up …"""
    at_most: int | None = Field(default=None, ge=1, le=5)
    """… or from this one down."""


class EndingSection(_Section):
    """[survey.endings.NAME]: what a participant is shown at the end, by how the visit ended."""

    code: str = ""
    """Completion code; one of our own when left out."""
    redirect: str = ""
    """Where to go; {code}, {participant}, {study} and {session} are filled in. Empty: the code is shown instead."""


class PaySection(_Section):
    """[survey.pay]: what participants get, and what the platform takes."""

    currency: str = "USD"
    """Printed beside every amount."""
    per_task: float = Field(default=0.0, ge=0)
    """What one task pays."""
    minutes_per_task: float = Field(default=30.0, gt=0)
    """How long one task takes, for the pay per hour."""
    minimum_per_hour: float = Field(default=8.0, ge=0)
    """The planner warns below this; Prolific's own floor was 8 US dollars (6 pounds) when this was written."""
    fee: float = Field(default=1 / 3, ge=0)
    """The platform's fee as a share of the pay; Prolific's for academics was a third when this was written."""

    def says(self, name: str) -> bool:
        """Whether the study file says this itself: participants are promised nothing that is a default."""
        return name in self.model_fields_set


class ExclusionSection(_Section):
    """[survey.exclude]: whose answers are left out, stated before the first answer is seen."""

    instructed_failed: int = Field(default=2, ge=1)
    """Exclude from this many failed instructed checks on."""
    gold_below: float = Field(default=0.8, ge=0, le=1)
    """Exclude below this share of right answers on gold items."""
    seconds_per_answer: float = Field(default=1.0, ge=0)
    """Exclude below this median time per answer: nobody looks at a pair and gives ten answers in ten seconds."""
    straight_line: float = Field(default=0.9, gt=0, le=1)
    """Exclude above this share of items with the same answer to every question."""
    agreement_below: float | None = Field(default=None, ge=-1, le=1)
    """Exclude below this correlation with the mean of the others; off by default, since disagreement may be honest."""


class EthicsTexts(_Section):
    """[survey.ethics.translations.LANGUAGE]: the texts of the consent page in another language."""

    purpose: str = ""
    """What the study is for, in a few sentences."""
    risks: str = ""
    """What may harm or distress; a note about the pictures is there already."""
    data: str = ""
    """What is kept beside the answers; what the survey itself keeps is said already."""
    support: str = ""
    """Whom to turn to if something was upsetting."""


class EthicsSection(EthicsTexts):
    """[survey.ethics]: what an ethics board asks for on the consent page. `serve --production` refuses to do without.

    Texts are in the first of the survey's languages.
    """

    institution: str = ""
    """Who is responsible for the study."""
    investigator: str = ""
    """The person who leads it."""
    contact: str = ""
    """How participants reach them, at the foot of every page: an e-mail address, a telephone number."""
    protocol: str = ""
    """Number of the protocol, with the board that approved it; "exempt: …" where none is needed."""
    keep_until: str = Field(default="", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    """The last day on which ids of participants are kept ("2028-12-31"); the day after they are deleted."""
    published_from: str = Field(default="", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    """The first day on which answers may stand in a published bundle, without names or ids ("2027-03-01"): from then
    on they cannot be recalled. `evenedit bundle` holds no real person's answers before it."""
    translations: dict[str, EthicsTexts] = {}
    """The texts in further languages."""
    pages: dict[str, str] = {}
    """Markdown files by language, which stand in place of the texts: `{ en = "consent.en.md" }`."""


class QuestionTexts(_Section):
    """[survey.questionnaire.questions.translations.LANGUAGE]: a question of the study in another language."""

    text: str
    """The question."""
    options: list[str] = Field(min_length=2)
    """Its answers, in the order of the original."""


class OwnQuestionSection(_Section):
    """[[survey.questionnaire.questions]]: a question of the study's own to participants about themselves."""

    id: str = Field(pattern=f"^{FACTOR_NAME}$")
    """Its name in tables of numbers."""
    title: str
    """How tables print it."""
    text: str
    """The question, in the first of the survey's languages."""
    options: list[str] = Field(min_length=2)
    """The answers to choose from; "prefer not to say" is always one more."""
    sensitive: bool = False
    """Asked with a consent of its own, as ethnicity is: health, religion, politics, sexual orientation."""
    translations: dict[str, QuestionTexts] = {}
    """The question in further languages."""


class QuestionnaireSection(_Section):
    """[survey.questionnaire]: what participants are asked about themselves, after the task and only if they agree."""

    ask: list[Literal["age", "sex", "ethnicity", "student", "language", "country"]] = [
        *("age", "sex", "ethnicity", "student", "language", "country")
    ]
    """Which of the built-in questions; all by default."""
    from_platform: bool = False
    """These come from Prolific's demographic export (`evenedit survey prolific demographics`) and are not asked: the
    consent page says so, and asks for each person's consent apart from the consent to take part."""
    questions: list[OwnQuestionSection] = []
    """The study's own questions."""
    population: dict[str, dict[str, float]] = {}
    """Shares to which people's rates are weighted, by question: `{ sex = { Female = 0.5, Male = 0.5 } }`. Where a
    question is left out, each group weighs the same."""


class PlatformSection(_Section):
    """[survey.platform]: how participants are introduced."""

    kind: Literal["prolific", "panel", "invitation"] = "invitation"
    """`invitation` by signed links, `panel` by URL parameters, or `prolific`."""
    participant: str = "PROLIFIC_PID"
    """URL parameter that holds the participant's id; the session and study likewise."""
    session: str = "SESSION_ID"
    """URL parameter that holds the session's id."""
    study: str = "STUDY_ID"
    """URL parameter that holds the id of our study on the platform."""
    study_ids: list[str] = []
    """Ids of our study on the platform; others are turned away. Empty: any."""
    signed: bool = False
    """Only links that carry the platform's signature: Prolific's own (secure external URLs), or for a panel an
    HMAC-SHA256 with the secret in EVENEDIT_PANEL_SECRET. `serve --production` asks for it."""
    origin: str = ""
    """The address participants know us by, https://…; a signature must be meant for it."""
    api: str = "https://api.prolific.com/api/v1"
    """Where Prolific's interface is."""


class SurveySection(_Section):
    """[survey]: which cases people rate, how they are asked, and simulated people for a dry run."""

    surveys: list[Literal[1, 2, 3]] = Field(default=[1], min_length=1)
    """1: five axes for each output; 2: which output keeps the identity; 3: who got the role."""
    sampler: Literal["balanced", "strata", "priority"] = "balanced"
    """How cases are drawn: evenly (`balanced`, `strata`), or by what the judges' scores say (`priority`)."""
    population: Literal["diagnosis", "mitigation"] = "diagnosis"
    """Which cases can be drawn: all of the diagnosis, or only those that have a mitigated output beside them."""
    cases: int = Field(default=500, ge=1)
    """How many cases people rate."""
    raters_per_item: int = Field(default=3, ge=1)
    """How many people rate each case."""
    items_per_task: int = Field(default=50, ge=1)
    """Pages of one task, gold items included."""
    gold: str | None = None
    """A CSV of known answers, or "truth" in a study whose editors are all simulated; no gold items when left out."""
    gold_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of a task's items that are gold."""
    instructed: int = Field(default=2, ge=0)
    """Instructed checks per task, beside its items."""
    seat_minutes: float = Field(default=120.0, gt=0)
    """A slot is offered again after so many minutes without an answer."""
    dashboard: bool = False
    """Participants pick their task, as published; by default they are given the next slot."""
    languages: list[str] = Field(default=["en", "ko"], min_length=1)
    """The languages a participant can choose from: `en`, `ko`, or the code of a file `languages/<code>.toml` in the
    study's folder."""
    quotas: dict[Literal["disagreement", "drift", "erasure", "skin", "routine"], float] = {}
    """Shares of the priority sampler."""
    platform: PlatformSection = PlatformSection()
    """How participants are introduced."""
    pay: PaySection = PaySection()
    """What participants get."""
    ethics: EthicsSection = EthicsSection()
    """What the consent page says beside its own words."""
    questionnaire: QuestionnaireSection | None = None
    """What participants are asked about themselves; nothing when left out."""
    exclude: ExclusionSection = ExclusionSection()
    """Whose answers are left out."""
    endings: dict[
        Literal["completed", "no_consent", "no_seat", "screened_out", "failed_checks", "withdrawn"], EndingSection
    ] = {}
    """What is shown at the end, by how the visit ended."""
    simulated_people: int = Field(default=0, ge=0)
    """How many simulated people answer in a rehearsal; 0 for none."""
    settings: dict[str, Any] = {}
    """How simulated people err: the settings of the simulated judge."""


class StatisticsSection(_Section):
    """[statistics]: intervals and tests."""

    draws: int = Field(default=2000, ge=100)
    """Bootstrap draws."""
    permutations: int = Field(default=4999, ge=99)
    """Draws of each permutation test."""
    seed: int = 20240
    """Draws the draws."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of every interval."""
    multilevel: bool = False
    """Also fits a multilevel model to each rate and axis: intersections of labels, partially pooled. Up to a minute."""


class FindingsSection(_Section):
    """[findings]: from when on something counts as found."""

    tolerance: float = Field(default=0.1, ge=0, lt=1)
    """The share of edits up to which a change that cannot cancel out (another person, a change of apparent race or
    gender, an ignored request, a refusal) is tolerated: a finding is clear only where its interval lies above."""
    margin: float | None = Field(default=None, gt=0, lt=1)
    """The difference up to which groups, or both directions of a shift, count as even: reports say so where the whole
    interval lies within ± this share, and a gate can ask for it. Without it nothing is called even."""


class ExecutorSection(_Section):
    """[executor]: where edits run."""

    kind: Literal["local", "ray"] = "local"
    """On this machine, or on a Ray cluster."""
    workers: int = Field(default=2, ge=1)
    """Threads that edit or rate on this machine's CPU."""
    calls: int | None = Field(default=None, ge=1)
    """Calls to somebody else's service under way at once; left out: begins with 16 and finds its level, up to 100."""
    processes: int = Field(default=0, ge=0)
    """Processes that edit, one GPU each where there are any; 0 = edit in this process, or one per GPU."""
    retries: int = Field(default=2, ge=0)
    """How often a failed edit is tried again in one run."""
    max_failures: int = Field(default=5, ge=0)
    """So many failures of one kind in a row stop that editor or judge, and the others go on; 0: never."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds for one edit or one rating, its retries included; left out: 1800 on this machine, 3600 for a service."""
    load_timeout: float | None = Field(default=None, gt=0)
    """Seconds for loading an editor in a process or on Ray, what it reads beforehand included; left out: 4 hours."""
    lease: float = Field(default=60.0, gt=0)
    """PostgreSQL: seconds after which others take over the work of a run that is not heard of any more."""
    address: str = "auto"
    """Ray: address of the cluster; "" starts one on this machine."""
    num_gpus: float = Field(default=0.0, ge=0)
    """Ray: GPUs per actor."""
    num_cpus: float = Field(default=1.0, ge=0)
    """Ray: cores per actor."""


class CacheSection(_Section):
    """[cache]: replies of judges kept by content, so that the same question is not paid for twice."""

    use: bool = True
    """Whether replies are kept and reused."""
    folder: str = "cache"
    """In the study's folder; a path that several studies name is shared by them."""


class Sections(_Section):
    """The tables of study.toml."""

    study: About
    """Title, preset and seed."""
    store: StoreSection = StoreSection()
    """Where results live."""
    sources: SourcesSection
    """Where the portraits come from: `drawn`, `folder`, `fairface`, or a plug-in's kind."""
    factors: list[FactorSection] = []
    """What portraits are labelled and grouped by."""
    curation: CurationSection | None = None
    """Candidates among which reviewers choose the portraits."""
    prompts: PromptSection = PromptSection()
    """Which prompts the diagnosis uses."""
    experiments: Experiments = Experiments()
    """Which experiments run."""
    editors: list[EditorSection] = []
    """What is audited."""
    judges: list[JudgeSection] = []
    """Who scores, primary first."""
    instruments: list[InstrumentSection] = []
    """What is measured in pixels."""
    ensemble: EnsembleSection = EnsembleSection()
    """How several judges' scores become one."""
    thresholds: dict[str, Threshold] = {}
    """From which score on a rate counts, by rate."""
    survey: SurveySection | None = None
    """Which cases people rate, and how they are asked."""
    statistics: StatisticsSection = StatisticsSection()
    """Intervals and tests."""
    findings: FindingsSection = FindingsSection()
    """From when on something counts as found."""
    hypotheses: list[HypothesisSection] = []
    """What the study is to test."""
    executor: ExecutorSection = ExecutorSection()
    """Where edits run."""
    cache: CacheSection = CacheSection()
    """Replies of judges kept by content."""
