"""Commands for a study's survey: cases, participants, payment, ratings."""

from __future__ import annotations

import getpass
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import EDITOR_NAMES, OUT, STUDY, CommandGroup, example, folder_of, open_study, split_pairs

if TYPE_CHECKING:
    from evenedit.api.study import Study
    from evenedit.config.study_file import SurveySection
    from evenedit.storage.survey_store import SurveyStore
    from evenedit.survey.cost import SurveyBudget
    from evenedit.survey.quality import Quality
    from evenedit.survey.sessions import SurveyService

PAY = ("per_task", "minutes_per_task", "minimum_per_hour", "fee")
DECISIONS = ("approve", "return", "reject")


@click.group(cls=CommandGroup)
@example("evenedit survey plan my-study")
def survey() -> None:
    """Run a survey: sample, plan, invite, follow, pay, export."""


@survey.command()
@STUDY
@click.option(
    "--again",
    "redrawing",
    is_flag=True,
    help="Draw a new sample after a change of study.toml, if nobody has taken part.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Also write a CSV file with one row per case.")
@example("evenedit survey sample my-study\nevenedit survey sample my-study --out sample.csv")
def sample(study: Path, redrawing: bool, out: Path | None) -> None:
    """Draw the cases of the survey and print their margins.

    Inclusion probabilities are stored.
    """
    import pandas as pd

    from evenedit.core.images import write_whole
    from evenedit.core.spreadsheet import as_csv
    from evenedit.survey.sample import listing, margins, redraw, sampled, stale

    loaded = open_study(study)
    section = _section(loaded)
    listed = []
    for number in sorted({section.sample_of(s) for s in section.surveys}):
        same = [s for s in section.surveys if section.sample_of(s) == number]
        if redrawing:
            redraw(loaded.file, loaded.store, number, sum(_taken_part(loaded, s) for s in same))
        cases = sampled(loaded.file, loaded.store, number)
        if warning := stale(loaded.file, loaded.store, number):
            click.echo(f"WARNING: {warning}")
        sampler = "stereotype" if number == 3 else section.sampler
        chances = sorted(cases.values())
        click.echo(f"{len(cases):,} cases ({sampler}), inclusion probability {chances[0]:.4f} to {chances[-1]:.4f}\n")
        table = margins(loaded.file, loaded.store, cases)
        wide = max(10, 2 + max(map(len, table["factor"])))
        click.echo(f"{'factor':{wide}}{'level':28}{'cases':>7}{'share':>8}")
        for row in table.itertuples():
            click.echo(f"{row.factor:{wide}}{row.level:28}{row.cases:>7}{row.share:>8.1%}")
        listed.append(listing(loaded.file, loaded.store, cases).assign(survey=min(same)))
    if out:
        write_whole(out, as_csv(pd.concat(listed)))


def _pay(_context: click.Context, option: click.Parameter, pairs: tuple[str, ...]) -> dict[str, float]:
    """Return the values of [survey.pay] to plan with instead."""
    values = split_pairs(option, pairs)
    try:
        pay = {key: float(value) for key, value in values.items()}
    except ValueError:
        raise click.BadParameter("expected a number after '='") from None
    if unknown := sorted(pay.keys() - set(PAY)):
        raise click.BadParameter(f"there is no '{unknown[0]}'; the keys are {', '.join(PAY)}")
    if min(pay.values(), default=1) < 0 or pay.get("minutes_per_task") == 0:
        raise click.BadParameter("numbers must be 0 or more, and minutes_per_task above 0")
    return pay


@survey.command()
@click.argument("study", type=click.Path(path_type=Path), required=False)
@click.option(
    "--preset",
    type=click.Choice(["paper-prolific", "plan-002", "plan-002-no-gold"]),
    help="A published plan instead of a study.",
)
@click.option(
    "--pay",
    multiple=True,
    metavar="KEY=NUMBER",
    callback=_pay,
    help=f"Another value in [survey.pay]: {', '.join(PAY)}; can be repeated.",
)
@example("evenedit survey plan my-study\nevenedit survey plan --preset paper-prolific --pay minimum_per_hour=12")
def plan(study: Path | None, preset: str | None, pay: dict[str, float]) -> None:
    """Show the budget of a survey: tasks, people, hours, pay, fees.

    Also pay per hour and total.
    """
    from dataclasses import replace

    from evenedit.core.errors import EvenEditError
    from evenedit.survey import cost

    if (study is None) == (preset is None):
        raise EvenEditError("name a study or a --preset (paper-prolific, plan-002, plan-002-no-gold)")
    if preset:
        budget = cost.preset(preset)
    else:
        assert study is not None
        loaded = open_study(study)
        section = _section(loaded)
        mitigation = loaded.file.sections.experiments.mitigation
        editors = loaded.file.editors("stereotype")
        pairs = mitigation.cases if mitigation else 0
        roles = len(loaded.file.wino) * sum(len(e.seeds) for e in editors)
        budget = cost.of_study(section, {2: pairs, 3: roles})
    _print_budget(replace(budget, pay=budget.pay.model_copy(update=pay)))


def _print_budget(budget: SurveyBudget) -> None:
    click.echo(
        f"{'survey':28}{'items':>7}{'per task':>10}{'gold':>6}{'raters':>8}{'tasks':>7}{'people':>8}{'ratings':>9}"
    )
    for part in budget.parts:
        click.echo(
            f"{part.name:28}{part.items:>7,}{part.items_per_task:>10}{part.gold:>6}{part.raters:>8}"
            f"{part.tasks:>7}{part.people:>8}{part.ratings:>9,}"
        )
    money = budget.pay.currency
    click.echo(f"\n{budget.tasks} tasks, {budget.people} people, {budget.hours:,.1f} hours of work")
    click.echo(
        f"pay {budget.pay.per_task:.2f} {money} per task of {budget.pay.minutes_per_task:g} min: "
        f"{budget.per_hour:.2f} per hour"
    )
    click.echo(f"rewards {budget.rewards:,.2f} + fees {budget.fees:,.2f} = {budget.total:,.2f} {money}")
    for text in budget.notes:
        click.echo(f"note: {text}")
    for text in budget.warnings:
        click.echo(f"WARNING: {text}")


@survey.command()
@STUDY
@click.option(
    "--participants", is_flag=True, help="Show who rated instead: the paper's Table 17, in counts of five or more."
)
@example("evenedit survey status my-study\nevenedit survey status my-study --participants")
def status(study: Path, participants: bool) -> None:
    """Show the progress of a survey.

    Slots per task, how visits ended, and the quality of each participant's answers.
    """
    from evenedit.survey.admin import SurveyAdmin
    from evenedit.survey.sample import stale
    from evenedit.survey.visits import VisitEnding

    loaded = open_study(study)
    if participants:
        _print_participants(loaded)
        return
    for number in _section(loaded).surveys:
        if warning := stale(loaded.file, loaded.store, number):
            click.echo(f"WARNING: {warning}")
    with _service(study, write=False) as service:
        admin = SurveyAdmin(service)
        click.echo(f"{'survey':>6}{'task':>6}{'pages':>7}{'slots':>7}{'done':>6}{'taken':>7}{'free':>6}")
        for task in admin.progress():
            pages = task.cases + task.gold + task.instructed
            click.echo(
                f"{task.survey:>6}{task.task:>6}{pages:>7}{task.slots:>7}{task.done:>6}{task.taken:>7}{task.free:>6}"
            )
        for ending, count in sorted(admin.endings().items()):
            click.echo(f"{VisitEnding(ending).in_words if ending else 'in progress'}: {count}")
        if previews := admin.previews():
            click.echo(f"previews, which never count: {len(previews)}")
        for person in admin.people():
            if person.quality:
                _print_quality(person.quality)


def _print_participants(loaded: Study) -> None:
    from evenedit.survey.answers import PeopleRatings
    from evenedit.survey.profiles import OTHER

    profiles = PeopleRatings(loaded.file).profiles
    if profiles is None or not profiles.counts:
        click.echo("there are profiles of fewer than five participants")
        return
    for row in profiles.counts:
        cells = [*row.counts.items(), *([(OTHER, row.rest)] if row.rest else [])]
        counts = ", ".join(f"{answer} {n} ({n / row.people:.1%})" for answer, n in cells)
        ages = "" if row.mean is None else f"{row.mean:.1f} ± {row.deviation:.1f} years; "
        click.echo(f"survey {row.survey}, {row.people} people, {row.title}: {ages}{counts}")


def _print_quality(quality: Quality) -> None:
    parts = [f"{quality.items} items"]
    if quality.gold_accuracy is not None:
        parts.append(f"gold {quality.gold_accuracy:.0%}")
    if quality.instructed_asked:
        parts.append(f"checks failed {quality.instructed_failed}/{quality.instructed_asked}")
    if quality.seconds_per_answer is not None:
        parts.append(f"{quality.seconds_per_answer:.2f} s per answer")
    if quality.agreement is not None:
        parts.append(f"agreement {quality.agreement:.2f}")
    exclusion = f"  EXCLUDED: {'; '.join(quality.excluded)}" if quality.excluded else ""
    click.echo(f"{quality.rater}: {', '.join(parts)}{exclusion}")


@survey.command()
@STUDY
@OUT
@example("evenedit survey export my-study --out my-study/ratings")
def export(study: Path, out: Path | None) -> None:
    """Write ratings, choices, data quality and a codebook, pseudonymised. As CSV and JSON."""
    from evenedit.survey.export import write

    loaded = open_study(study)
    with _database(loaded, write=False) as database:
        for path in write(loaded.file, loaded.store, database, out or folder_of(study) / "ratings"):
            click.echo(path)


@survey.command("import")
@STUDY
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@EDITOR_NAMES
@click.option(
    "--columns",
    type=click.Path(path_type=Path),
    help='A TOML file that says which column of FILES holds a question: edit_applied = "Q1".',
)
@click.option("--demographics", is_flag=True, help="FILES are demographic exports of Prolific instead of ratings.")
@click.option(
    "--consented",
    is_flag=True,
    help="With --demographics: all people in the files consented elsewhere to this use, including ethnicity.",
)
@example(
    "evenedit survey import my-study ratings.csv --editor flux=flux2-dev\n"
    "evenedit survey import my-study prolific_demographic_export.csv --demographics"
)
def import_(
    study: Path,
    files: tuple[Path, ...],
    editors: dict[str, str],
    columns: Path | None,
    demographics: bool,
    consented: bool,
) -> None:
    """Import ratings by people that another tool collected.

    A long CSV, or results of Mechanical Turk: a column for each question, with positions, codes or words. With
    --demographics, import who the participants are: only of those who consented, and printed only as counts of five
    people or more.
    """
    loaded = open_study(study)
    section = _section(loaded)
    with _database(loaded, write=True) as database:
        if demographics:
            for path in files:
                _import_demographics(path, database, section, consented)
        else:
            _import_ratings(loaded, database, files, editors, columns)


def _import_ratings(
    loaded: Study, database: SurveyStore, files: tuple[Path, ...], editors: dict[str, str], columns: Path | None
) -> None:
    from evenedit.survey import import_csv
    from evenedit.survey.answers import people_frame

    names = import_csv.read_columns(columns, loaded.file) if columns else {}
    for path in files:
        imported = import_csv.read(path, database, loaded.file, loaded.store, editors, getpass.getuser(), names)
        click.echo(
            f"{path}: {imported.pages:,} ratings of {imported.raters} people ({imported.answers:,} answers)"
            + (f"; {imported.rejected} rejected assignments left out" if imported.rejected else "")
        )
    for quality in people_frame(loaded.file, database)[1]:
        _print_quality(quality)


def _import_demographics(path: Path, database: SurveyStore, section: SurveySection, consented: bool) -> None:
    from evenedit.survey.demographics_csv import import_profiles

    imported = import_profiles(path, database, section, getpass.getuser(), consented=consented)
    click.echo(f"{path}: {imported.rows} rows, stored for {imported.people} people")
    for count, reason in (
        (imported.strangers, "are not participants of this study"),
        (imported.unasked, "have not consented"),
        (imported.without_sensitive, "stored without data that need a separate consent (ethnicity)"),
        (imported.revoked, "revoked their consent on Prolific for a value or for all (CONSENT_REVOKED)"),
        (imported.expired, "have expired data on Prolific (DATA_EXPIRED)"),
    ):
        if count:
            click.echo(f"{count} {reason}")


@survey.command()
@STUDY
@click.argument("who")
@click.option("--platform", help="WHO is an id of this platform (prolific, panel, invitation), not a pseudonym.")
@click.option("--keep-answers", is_flag=True, help="Only free the slot: the answers stay stored and are not counted.")
@example("evenedit survey withdraw my-study person-3f2a9c01d4e7")
def withdraw(study: Path, who: str, platform: str | None, keep_answers: bool) -> None:
    """Erase a participant's answers and ids, and free the slot."""
    from evenedit.core.errors import EvenEditError
    from evenedit.survey.admin import SurveyAdmin

    if keep_answers and platform:
        raise click.UsageError("--keep-answers needs a pseudonym; leave --platform out")
    with _service(study) as service:
        admin = SurveyAdmin(service)
        if keep_answers:
            freed = admin.release(who, getpass.getuser())
            click.echo("the slot is free again" if freed else "the participant held no slot")
            return
        if platform is None:
            admin.withdraw(who, getpass.getuser())
        elif not admin.withdraw_external(platform, who, getpass.getuser()):
            raise EvenEditError(f"no participant from {platform} has this id")
    click.echo("erased; the slot is free again")


@survey.command()
@STUDY
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="Number of links.")
@click.option("--prefix", default="guest", show_default=True, help="Names are PREFIX-001, PREFIX-002 …")
@click.option("--survey", "number", type=click.IntRange(0, 3), default=0, help="Survey 1, 2 or 3; default: the first.")
@click.option("--preview", is_flag=True, help="One link to previews instead: they never count; it works for 7 days.")
@example("evenedit survey invite my-study --count 30")
def invite(study: Path, count: int, prefix: str, number: int, preview: bool) -> None:
    """Print signed invitation links, one per person.

    They begin with the address in `[survey.platform] origin`.
    """
    from evenedit.survey.platforms import Invitations
    from evenedit.survey.previews import PreviewLinks

    loaded = open_study(study)
    origin = _origin(_section(loaded))
    with _database(loaded, write=False) as database:
        if preview:
            click.echo(PreviewLinks(database.key).link(origin, number))
            return
        invitations = Invitations(database.key)
        for person in range(1, count + 1):
            click.echo(invitations.link(origin, f"{prefix}-{person:03d}", number))


@survey.command()
@STUDY
@example("evenedit survey rehearse my-study")
def rehearse(study: Path) -> None:
    """Fill the slots with simulated participants.

    They answer through the real pages of a local server.
    """
    from evenedit.web.rehearsal import rehearse as fill

    click.echo(fill(open_study(study)))


@survey.group(cls=CommandGroup)
@example("evenedit survey prolific create my-study")
def prolific() -> None:
    """Draft a study on Prolific, follow submissions, approve them.

    The token is read from PROLIFIC_TOKEN.
    """


@prolific.command()
@STUDY
@click.option("--survey", "number", type=click.IntRange(1, 3), default=1, show_default=True, help="Survey 1, 2 or 3.")
@example("evenedit survey prolific create my-study")
def create(study: Path, number: int) -> None:
    """Draft a study with a completion code for each ending.

    Change its title and description, and publish it, on Prolific's page. Participants open the address in
    `[survey.platform] origin`.
    """
    from evenedit.survey.prolific import ProlificAPI, draft

    with _service(study) as service:
        body = draft(service.section, service, base=_origin(service.section), survey=number)
        ident = ProlificAPI(service.section.platform.api).create(body)
    click.echo(f"drafted {ident}: {body['total_available_places']} places at {body['reward'] / 100:.2f}")
    click.echo(f'add it to study.toml: [survey.platform] kind = "prolific", study_ids = ["{ident}"]; then publish it')


@prolific.command()
@STUDY
@click.argument("ident", metavar="PROLIFIC_STUDY")
@click.option("--approve", is_flag=True, help="Approve all who completed the task with the right code.")
@click.option(
    "--decide",
    "decisions",
    multiple=True,
    metavar="ID=approve|return|reject",
    callback=lambda _context, option, pairs: split_pairs(option, pairs),
    help="Decide about a participant who failed instructed checks; can be repeated.",
)
@click.option("--message", default="", help="With --decide: message; 100 characters or more for a rejection.")
@example(
    "evenedit survey prolific sync my-study 60aca280709ee40ec37d4885 --approve\n"
    "evenedit survey prolific sync my-study 60aca280709ee40ec37d4885 --decide person-3f2a9c01d4e7=approve"
)
def sync(study: Path, ident: str, approve: bool, decisions: dict[str, str], message: str) -> None:
    """Compare Prolific's submissions with the survey's.

    Slots of returned submissions are freed. A rejection must meet Prolific's rules.
    """
    from evenedit.survey.prolific import ProlificAPI, Rejections
    from evenedit.survey.prolific import sync as synchronise

    for decision in decisions.values():
        if decision not in DECISIONS:
            raise click.UsageError(f"--decide: '{decision}' is none of {', '.join(DECISIONS)}")
    with _service(study) as service:
        api = ProlificAPI(service.section.platform.api)
        rejections = Rejections(service, api, ident)
        for pseudonym, decision in decisions.items():
            if decision == "reject":
                click.confirm(f"Reject the work of {pseudonym}, who will not be paid?", abort=True)
            rejections.decide(pseudonym, decision, getpass.getuser(), message)
            click.echo(f"{decision} {pseudonym}: done")
        result = synchronise(service, api, ident)
        click.echo(f"{result.submissions} submissions; {result.released} slots freed; {len(result.payable)} to approve")
        for submission in result.payable if approve else ():
            api.approve(submission.id)
            click.echo(f"approved {submission.id}")
        for submission in result.doubtful:
            click.echo(f"check {submission.id}: not completed here, or with another code ({submission.code or 'none'})")
        for case in rejections.waiting():
            click.echo(f"{case.pseudonym} failed {case.failed} of {case.checks} instructed checks: use --decide")


def _origin(section: SurveySection) -> str:
    from evenedit.core.errors import EvenEditError

    if not section.platform.origin:
        raise EvenEditError(
            'study.toml lacks the address that participants open. Add: [survey.platform] origin = "https://…"'
        )
    return section.platform.origin


def _section(loaded: Study) -> SurveySection:
    from evenedit.core.errors import EvenEditError

    section = loaded.file.sections.survey
    if section is None:
        raise EvenEditError("study.toml has no [survey]; add this table to collect ratings by people")
    return section


def _taken_part(loaded: Study, survey: int) -> int:
    """Return how many people have arrived for a survey; 0 if it has no database yet."""
    from evenedit.storage.survey_schema import DATABASE
    from evenedit.survey.admin import SurveyAdmin
    from evenedit.survey.sessions import SurveyService

    if not loaded.file.sections.store.url and not (loaded.file.folder / DATABASE).exists():
        return 0
    with closing(SurveyService.open(loaded.file, loaded.store, write=False)) as service:
        return SurveyAdmin(service).taken_part(survey)


def _service(study: Path, *, write: bool = True) -> closing[SurveyService]:
    from evenedit.survey.sessions import SurveyService

    loaded = open_study(study)
    return closing(SurveyService.open(loaded.file, loaded.store, write=write))


def _database(loaded: Study, *, write: bool) -> closing[SurveyStore]:
    from evenedit.storage.survey_store import SurveyStore

    return closing(SurveyStore(loaded.file.folder, loaded.file.sections.store.url, write=write))
