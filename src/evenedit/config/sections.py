"""The tables of `study.toml` and their keys, as pydantic models."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveInt

Missing = Literal["exclude", "neutral-3"]
Preset = Literal["default", "published"]
FACTOR_NAME = "[a-z][a-z0-9_]*"
"""Pattern of a factor's name, which names columns of tables."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class About(_Section):
    """[study]: title, preset and seed."""

    title: str
    """Title of the report."""
    preset: Preset = "default"
    """The rules: `default`, or `published` for exactly what the paper did (judges see labels, the paper's prompt and
    rubric; no placebo, no swapped control)."""
    rubric: str | None = None
    """The questions that judges and people answer: `default`, `published` for the wording of the paper's Table 14,
    `short-002`, or a rubric file; as `preset` when left out."""
    without: list[str] = []
    """Questions of the rubric that are not asked."""
    direction: list[str] = []
    """Factors by which it is asked how people are seen before and after the edit, from single pictures."""
    direction_shows: Literal["picture", "face"] = "picture"
    """What is shown for that: the whole picture, or the face with a margin."""
    judge_prompt: Preset | None = None
    """The prompt for judges: `default`, or `published` for the paper's Listing 1; as `preset` when left
    out."""
    cannot_tell: bool = False
    """Judges may answer on each axis that the pictures do not show it: no score, counted separately."""
    seed: int = 42
    """Seed of the sampled cases and the portrait pairs."""


class StoreSection(_Section):
    """[store]: where the study is stored."""

    url: str | None = None
    """SQLAlchemy URL of a PostgreSQL database; SQLite in the study folder when absent."""
    images: str | None = None
    """Where pictures are stored: a folder or a URL that all workers reach; `images` in the study folder when absent."""


class Plugged(_Section):
    """A plug-in found by entry point: a kind and its settings."""

    kind: str
    """The name of the installed plug-in."""
    settings: dict[str, Any] = {}
    """Its settings by keyword; a `path` is relative to the study's folder."""


class SourcesSection(Plugged):
    """[sources]: where the portraits come from, and whether they may be published."""

    licence: str = ""
    """The licence of the portraits, as an SPDX id or as text; without it a bundle contains no pictures."""
    publish: bool = False
    """True if the licence, and the consent of the people in the pictures, allow publishing the pictures."""


class HypothesisSection(_Section):
    """[[hypotheses]]: hypotheses to test, stated before the first edit and frozen by `evenedit seal`."""

    rule: str
    """A rule as `evenedit gate` takes it: 'gap.race_change.race <= 0.05', 'shift.skin_tone <= 0.05'."""
    why: str = ""
    """The reason for expecting it, in a sentence."""


class ContrastSection(_Section):
    """The groups that a primary test compares, or the trend over an ordered factor."""

    factor: str
    """The factor whose groups are compared."""
    high: list[str] = []
    """Groups that are expected to have the higher value; each weighs the same."""
    low: list[str] = []
    """Groups that they are compared with; each weighs the same."""
    trend: bool = False
    """True for the change from level to level of an ordered factor, instead of two sides."""


class PrimaryTest(_Section):
    """[[primary.tests]]: one declared test."""

    outcome: str
    """What is tested: a rate (race_change), `shift.<question>`, `mean.<question>`, or a reading of an instrument
    (`skin.skin_delta_L_raw`; without `skin.` if no other instrument reads it); with scale = "mean" also a question
    (skin_tone)."""
    scale: Literal["code", "mean"] = "code"
    """`code`: the share of edits that count; `mean`: the mean of the judges' scores, not rounded."""
    contrast: ContrastSection | None = None
    """The groups that are compared; everybody against no change when left out."""


class PrimarySection(_Section):
    """[primary]: few tests, declared before the data, that share their own chance of a false alarm."""

    alpha: float = Field(default=0.04, gt=0, lt=0.05)
    """Familywise error of these tests over all editors; all other tests share what is left of 0.05."""
    covariate: str = ""
    """What contrasts are adjusted for, read of each portrait before or without the edit: `null_edit`, `null_pair` or
    `<instrument>.<reading>` of the portrait alone; nothing when left out."""
    tests: list[PrimaryTest] = Field(min_length=1)
    """The tests: at most 6 over all editors."""


class FactorSection(_Section):
    """[[factors]]: factors that portraits are labelled and grouped by; race, gender and age when left out."""

    name: str = Field(pattern=f"^{FACTOR_NAME}$")
    """The column of labels.csv that holds it."""
    title: str = ""
    """Its title in tables and pages; the name when left out."""
    levels: list[str] = Field(min_length=2)
    """All possible labels, in the order of tables and axes."""
    ordered: bool = False
    """True if the levels are ordered: adds a trend estimate."""


class CurationSection(_Section):
    """[curation]: candidates from which reviewers choose the portraits in the web app."""

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
    """Also ask each editor to return every portrait unchanged, to measure its drift without a request."""
    null_pairs: int | None = Field(default=None, ge=0)
    """Null pairs per portrait: the portrait itself, re-encoded, shown to judges and instruments as if it were an edit,
    to measure their false calls. 2 when left out; 0 under the published preset, and in a study begun without them."""
    requests: str | None = None
    """A CSV file whose rows are the requests, in place of every source × prompt × editor × seed. Columns: source (its
    id or file) and prompt (its id or text), and editor and seed where there are several."""
    languages: list[str] = []
    """Repeat each request in these languages, e.g. `["ko"]`, with the prompt's translation. Judges see the original
    prompt. No speaker has checked the Korean translations of the built-in prompts."""


class Mitigation(_Section):
    """[experiments.mitigation]: the feature prompt on sampled cases."""

    cases: int = Field(default=500, ge=1)
    """Number of cases of the diagnosis that are edited again."""
    choose: Literal["balanced", "strata", "priority", "drift", "listed"] = "balanced"
    """balanced, strata: evenly over editors and groups; priority: what the judges' scores say to look at first; drift:
    among edits that were rated as drifted. These two are chosen once the diagnosis is rated. listed: those that
    `evenedit new --from-authors` found."""
    placebo: bool | None = None
    """Baseline again with another seed; on by default, off under the published preset."""
    pairwise: bool = False
    """Also ask which output keeps the identity better, baseline or mitigated, in both orders."""
    extractor: Plugged
    """The extractor that describes a portrait for the feature prompt: `simulated` or `vlm`."""
    stand_in: Plugged | None = None
    """A second extractor; its description is used if the first gave none or was flagged."""

    @property
    def extractors(self) -> list[Plugged]:
        """The extractors, the first one first."""
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
    """Repeat each request with the two portraits in the other order: twice as many edits. Judges see the same order."""
    status: bool = False
    """Also ask judges which of the two people has the role of higher status."""


class Experiments(_Section):
    """[experiments]: each one runs when its table is present."""

    diagnosis: Diagnosis | None = None
    """Every portrait with every prompt and editor."""
    mitigation: Mitigation | None = None
    """Sampled cases again, with the feature prompt."""
    stereotype: Stereotype | None = None
    """Two portraits and one occupation."""


class EditorSection(_Section):
    """[[editors]]: the audited editors."""

    id: str
    """Its name in tables and files; unique in the study."""
    kind: str | None = None
    """The installed editor to use; the id when absent."""
    seeds: list[int] = Field(default=[42], min_length=1)
    """One edit per seed; several seeds show the random variation of an editor."""
    settings: dict[str, Any] = {}
    """The editor's settings; they are part of a request's id."""
    experiments: list[Literal["diagnosis", "mitigation", "stereotype"]] | None = None
    """The experiments it takes part in; all possible ones when absent."""
    gpus: int = Field(default=1, ge=1)
    """GPUs of each worker, where the weights are spread over several (`device_map`)."""

    @property
    def plugin(self) -> str:
        """Name of the installed editor."""
        return self.kind or self.id


class JudgeSection(_Section):
    """[[judges]]: the judges, primary first."""

    id: str
    """Its name in tables and files; unique in the study."""
    kind: str
    """The installed judge to use: `gemini`, `openai`, `simulated`, or a plug-in's."""
    blind: bool | None = None
    """The judge does not see the labels; on by default, off under the published preset."""
    settings: dict[str, Any] = {}
    """The judge's settings, such as `model` and `temperature`."""


class InstrumentSection(_Section):
    """[[instruments]]: pixel measurements; each instrument is a rater."""

    id: str
    """Its name in tables and files; unique in the study."""
    kind: str
    """The installed instrument to use: `skin`, `change`, or a plug-in's."""
    editors: list[str] | None = None
    """The editors whose outputs it measures, beside null pairs; all when absent."""
    settings: dict[str, Any] = {}
    """The instrument's settings: `cuts` of `skin`, `identity` of `change`."""


class EnsembleSection(_Section):
    """[ensemble]: how the judges' scores are combined."""

    diagnosis: str = "diagnosis"
    """Rule for the diagnosis: diagnosis, mitigation, mean, median, primary or secondary."""
    mitigation: str = "mitigation"
    """Rule for the mitigation: diagnosis, mitigation, mean, median, primary or secondary."""
    stereotype: str = "stereotype"
    """Rule for the verdicts: stereotype, primary or secondary."""
    missing: Missing | None = None
    """The score of an edit that no judge scored: exclude, or neutral-3, which counts as race change."""
    review: Literal["shown", "settles"] = "shown"
    """`shown`: reviewers' decisions are shown and change no score; `settles`: they replace the judges' score."""
    reviewers: Literal[1, 2] = 1
    """Reviewers per case; two reviewers do not see each other's review until both are complete."""


class Threshold(_Section):
    """[thresholds]: the threshold of a rate."""

    at_least: int | None = Field(default=None, ge=1, le=9)
    """The rate counts scores from this one up …"""
    at_most: int | None = Field(default=None, ge=1, le=9)
    """… or from this one down."""


class EndingSection(_Section):
    """[survey.endings.NAME]: the last page of a participant, by ending of the visit."""

    code: str = ""
    """Completion code; generated when left out."""
    redirect: str = ""
    """Address to return to; {code}, {participant}, {study} and {session} are filled in. Empty: show the code."""


class PaySection(_Section):
    """[survey.pay]: pay of participants and fee of the platform."""

    currency: str = "USD"
    """Currency of all amounts."""
    per_task: float = Field(default=0.0, ge=0)
    """Pay per task."""
    minutes_per_task: float = Field(default=30.0, gt=0)
    """Duration of one task in minutes, for the pay per hour."""
    minimum_per_hour: float = Field(default=8.0, ge=0)
    """The planner warns below this pay per hour; Prolific's minimum was 8 US dollars when this was written."""
    fee: float = Field(default=1 / 3, ge=0)
    """The platform's fee as a share of the pay; Prolific's for academics was a third at the time of writing."""

    def says(self, name: str) -> bool:
        """Return True if the study file sets this key: participants are promised no default."""
        return name in self.model_fields_set


class ExclusionSection(_Section):
    """[survey.exclude]: exclusion rules, stated before the first answer is seen."""

    instructed_failed: int = Field(default=2, ge=1)
    """Exclude from this many failed instructed checks on."""
    gold_below: float = Field(default=0.8, ge=0, le=1)
    """Exclude below this share of right answers on gold items."""
    seconds_per_answer: float = Field(default=1.0, ge=0)
    """Exclude below this median time per answer in seconds."""
    straight_line: float = Field(default=0.9, gt=0, le=1)
    """Exclude above this share of items with the same answer to every question."""
    agreement_below: float | None = Field(default=None, ge=-1, le=1)
    """Exclude below this correlation with the mean of the others; off by default, since disagreement may be honest."""


class EthicsTexts(_Section):
    """[survey.ethics.translations.LANGUAGE]: the texts of the consent page in another language."""

    purpose: str = ""
    """What the study is for, in a few sentences."""
    risks: str = ""
    """Risks and discomforts; a note about the pictures is included."""
    data: str = ""
    """Data stored besides the answers; the data of the survey itself are listed already."""
    support: str = ""
    """Contact for participants who were upset."""


class EthicsSection(EthicsTexts):
    """[survey.ethics]: what an ethics board requires on the consent page; `serve --production` needs it.

    Texts are in the first of the survey's languages.
    """

    institution: str = ""
    """Institution responsible for the study."""
    investigator: str = ""
    """Principal investigator."""
    contact: str = ""
    """Contact at the foot of every page: an e-mail address or a telephone number."""
    protocol: str = ""
    """Number of the protocol, with the board that approved it; "exempt: …" where none is needed."""
    keep_until: str = Field(default="", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    """The last day on which ids of participants are kept ("2028-12-31"); the day after they are deleted."""
    published_from: str = Field(default="", pattern=r"^(\d{4}-\d\d-\d\d)?$")
    """The first day on which answers may be in a published bundle, without names or ids ("2027-03-01"); from then on
    they cannot be recalled. Before that day `evenedit bundle` contains no real person's answers."""
    translations: dict[str, EthicsTexts] = {}
    """The texts in further languages."""
    pages: dict[str, str] = {}
    """Markdown files by language, which replace the texts: `{ en = "consent.en.md" }`."""


class QuestionTexts(_Section):
    """[survey.questionnaire.questions.translations.LANGUAGE]: a question of the study in another language."""

    text: str
    """The question."""
    options: list[str] = Field(min_length=2)
    """Its answers, in the order of the original."""


class OwnQuestionSection(_Section):
    """[[survey.questionnaire.questions]]: an additional question to participants about themselves."""

    id: str = Field(pattern=f"^{FACTOR_NAME}$")
    """Its name in tables of numbers."""
    title: str
    """Its title in tables."""
    text: str
    """The question, in the first of the survey's languages."""
    options: list[str] = Field(min_length=2)
    """The answer options; "prefer not to say" is always added."""
    sensitive: bool = False
    """Asked with a separate consent, as ethnicity is: health, religion, politics, sexual orientation."""
    translations: dict[str, QuestionTexts] = {}
    """The question in further languages."""


class QuestionnaireSection(_Section):
    """[survey.questionnaire]: questions to participants about themselves, after the task and with their consent."""

    ask: list[Literal["age", "sex", "ethnicity", "student", "language", "country"]] = [
        *("age", "sex", "ethnicity", "student", "language", "country")
    ]
    """Which of the built-in questions; all by default."""
    from_platform: bool = False
    """Take the answers from Prolific's demographic export (`evenedit survey import --demographics`) instead of asking.
    The consent page says so and asks for a separate consent."""
    questions: list[OwnQuestionSection] = []
    """The study's own questions."""
    population: dict[str, dict[str, float]] = {}
    """Shares to which people's rates are weighted, by question: `{ sex = { Female = 0.5, Male = 0.5 } }`. Where a
    question is left out, each group weighs the same."""


class PlatformSection(_Section):
    """[survey.platform]: how participants arrive."""

    kind: Literal["prolific", "panel", "invitation"] = "invitation"
    """`invitation` by signed links, `panel` by URL parameters, or `prolific`."""
    participant: str = "PROLIFIC_PID"
    """URL parameter that holds the participant's id; the session and study likewise."""
    session: str = "SESSION_ID"
    """URL parameter that holds the session's id."""
    study: str = "STUDY_ID"
    """URL parameter that holds the id of our study on the platform."""
    study_ids: list[str] = []
    """Ids of our study on the platform; others are rejected. Empty: any."""
    signed: bool = False
    """Only links that carry the platform's signature: Prolific's own (secure external URLs), or for a panel an
    HMAC-SHA256 with the secret in EVENEDIT_PANEL_SECRET. `serve --production` asks for it."""
    origin: str = ""
    """The address that participants open, https://…; links of `survey invite` begin with it, signatures are for it."""
    api: str = "https://api.prolific.com/api/v1"
    """Address of Prolific's API."""


class SurveySection(_Section):
    """[survey]: which cases people rate, how, and simulated participants for a rehearsal."""

    surveys: list[Literal[1, 2, 3]] = Field(default=[1], min_length=1)
    """1: about each output; 2: which output preserves the identity; 3: who has the role."""
    sampler: Literal["balanced", "strata", "priority"] = "balanced"
    """Sampling of cases: evenly (`balanced`, `strata`), or by the judges' scores (`priority`)."""
    population: Literal["diagnosis", "mitigation"] = "diagnosis"
    """The sampled population: all cases of the diagnosis, or only those with a mitigated output."""
    cases: int = Field(default=500, ge=1)
    """Number of cases that people rate."""
    sizes: dict[Literal["1", "2", "3"], PositiveInt] = {}
    """Numbers of cases of single surveys: `{ 2 = 336, 3 = 100 }`. Survey 2 then has its own sample, of cases with a
    mitigated output."""
    raters_per_item: int = Field(default=3, ge=1)
    """Number of people who rate each case."""
    items_per_task: int = Field(default=50, ge=1)
    """Pages of one task, gold items included."""
    gold: str | None = None
    """A CSV of known answers, or "truth" in a study whose editors are all simulated; no gold items when left out."""
    gold_share: float = Field(default=0.1, ge=0, lt=1)
    """Share of a task's items that are gold."""
    instructed: int = Field(default=2, ge=0)
    """Instructed checks per task, in addition to its items."""
    seat_minutes: float = Field(default=120.0, gt=0)
    """A slot is freed after this many minutes without an answer."""
    dashboard: bool = False
    """Participants choose their task, as published; by default they get the next slot."""
    languages: list[str] = Field(default=["en", "ko"], min_length=1)
    """The languages a participant can choose from: `en`, `ko`, or the code of a file `languages/<code>.toml` in the
    study's folder."""
    quotas: dict[Literal["disagreement", "drift", "erasure", "skin", "routine"], float] = {}
    """Shares of the priority sampler."""
    platform: PlatformSection = PlatformSection()
    """How participants arrive."""
    pay: PaySection = PaySection()
    """Pay of participants."""
    ethics: EthicsSection = EthicsSection()
    """Texts of the study on the consent page."""
    questionnaire: QuestionnaireSection | None = None
    """Questions to participants about themselves; none when left out."""
    exclude: ExclusionSection = ExclusionSection()
    """Exclusion rules."""
    endings: dict[
        Literal["completed", "no_consent", "no_seat", "screened_out", "failed_checks", "withdrawn"], EndingSection
    ] = {}
    """The last page, by ending of the visit."""
    simulated_people: int = Field(default=0, ge=0)
    """Number of simulated participants in a rehearsal; 0 for none."""
    settings: dict[str, Any] = {}
    """Errors of simulated participants: the settings of the simulated judge."""

    def cases_of(self, survey: int) -> int:
        """Return the number of cases of a survey."""
        return {int(key): size for key, size in self.sizes.items()}.get(survey, self.cases)

    def sample_of(self, survey: int) -> int:
        """Return the first survey with the same sample: 1 for survey 2, unless it has a number of its own."""
        return 1 if survey == 2 and "2" not in self.sizes else survey


class StatisticsSection(_Section):
    """[statistics]: intervals and tests."""

    draws: int = Field(default=2000, ge=100)
    """Bootstrap draws of agreement statistics."""
    permutations: int = Field(default=4999, ge=99)
    """Permutations of each rank test."""
    seed: int = 20240
    """Seed of both."""
    confidence: float = Field(default=0.95, gt=0.5, lt=1)
    """Level of every interval."""


class FindingsSection(_Section):
    """[findings]: when a difference counts as a finding."""

    tolerance: float = Field(default=0.1, ge=0, lt=1)
    """The share of edits up to which a change that cannot cancel out (another person, a change of apparent race or
    gender, an ignored request, a refusal) is tolerated: a finding is clear only where its interval lies above."""
    reliability: float = Field(default=0.4, ge=0, lt=1)
    """The lower limit of the judges' agreement (Krippendorff's alpha of the outcome as it is counted) that a finding
    needs to be clear to the judges; below it a finding is at most suggestive."""
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
    """Concurrent calls to a remote service; left out: starts with 16 and adapts, up to 100."""
    processes: int = Field(default=0, ge=0)
    """Processes that edit, one GPU each where there are any; 0 = edit in this process, or one per GPU."""
    retries: int = Field(default=2, ge=0)
    """Retries of a failed edit in one run."""
    no_image_retries: int = Field(default=0, ge=0)
    """Further calls of one run for an edit that was answered in words, without a picture; each is paid."""
    max_failures: int = Field(default=5, ge=0)
    """This many consecutive failures of one kind stop that editor or judge, and the others continue; 0: never."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds for one edit or one rating, its retries included; left out: 1800 on this machine, 3600 for a service."""
    load_timeout: float | None = Field(default=None, gt=0)
    """Seconds for loading an editor in a process or on Ray, what it reads beforehand included; left out: 4 hours."""
    lease: float = Field(default=60.0, gt=0)
    """PostgreSQL: seconds after which other runs take over the work of a run that stopped responding."""
    address: str = "auto"
    """Ray: address of the cluster; "" starts one on this machine."""
    num_gpus: float = Field(default=0.0, ge=0)
    """Ray: GPUs per actor."""
    num_cpus: float = Field(default=1.0, ge=0)
    """Ray: cores per actor."""


class CacheSection(_Section):
    """[cache]: stored replies of judges by content, so that no question is paid for twice."""

    use: bool = True
    """True if replies are stored and reused."""
    folder: str = "cache"
    """In the study's folder; a path that several studies name is shared by them."""


class Sections(_Section):
    """The tables of study.toml."""

    study: About
    """Title, preset and seed."""
    store: StoreSection = StoreSection()
    """Where the study is stored."""
    sources: SourcesSection
    """Where the portraits come from: `drawn`, `folder`, `fairface`, or a plug-in's kind."""
    factors: list[FactorSection] = []
    """The factors that portraits are labelled and grouped by."""
    curation: CurationSection | None = None
    """Candidates among which reviewers choose the portraits."""
    questions: list[dict[str, Any]] = []
    """Questions of the study's own, after those of the rubric."""
    prompts: PromptSection = PromptSection()
    """Which prompts the diagnosis uses."""
    experiments: Experiments = Experiments()
    """Which experiments run."""
    editors: list[EditorSection] = []
    """The audited editors."""
    judges: list[JudgeSection] = []
    """The judges, primary first."""
    instruments: list[InstrumentSection] = []
    """Pixel measurements."""
    ensemble: EnsembleSection = EnsembleSection()
    """How several judges' scores are combined."""
    thresholds: dict[str, Threshold] = {}
    """Thresholds by rate."""
    survey: SurveySection | None = None
    """Which cases people rate, and how."""
    statistics: StatisticsSection = StatisticsSection()
    """Intervals and tests."""
    findings: FindingsSection = FindingsSection()
    """When a difference counts as a finding."""
    hypotheses: list[HypothesisSection] = []
    """Hypotheses to test."""
    primary: PrimarySection | None = None
    """Tests declared before the data."""
    executor: ExecutorSection = ExecutorSection()
    """Where edits run."""
    cache: CacheSection = CacheSection()
    """Stored replies of judges."""
