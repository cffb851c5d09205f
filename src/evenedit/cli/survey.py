"""Commands for a study's survey: cases, participants, payment, ratings."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import EDITOR_NAMES, OUT, STUDY, CommandGroup, example, folder_of, open_study

if TYPE_CHECKING:
    from evenedit.config.study_file import SurveySection
    from evenedit.storage.survey_store import SurveyStore
    from evenedit.study.study import Study
    from evenedit.survey.cost import SurveyBudget
    from evenedit.survey.quality import Quality
    from evenedit.survey.sessions import SurveyService

ACTOR = click.option("--as", "actor", default=getpass.getuser, help="Who decides; your login name by default.")


@click.group(cls=CommandGroup)
@example("evenedit survey plan my-study")
def survey() -> None:
    """Run a survey: draw cases, plan, invite, follow, pay, export."""


@survey.command()
@STUDY
@click.option("--again", is_flag=True, help="Draw anew after a change of study.toml, while nobody has taken part.")
@example("evenedit survey sample my-study")
def sample(study: Path, again: bool) -> None:
    """Draw the cases for the survey and print their margins.

    Their inclusion probabilities are stored.
    """
    from evenedit.survey.sample import margins, redraw, sampled, stale

    loaded = open_study(study)
    section = _section(loaded)
    for number in sorted({1 if s != 3 else 3 for s in section.surveys}):
        if again:
            same = [s for s in section.surveys if (s == 3) == (number == 3)]  # surveys 1 and 2 share their cases
            redraw(loaded.file, loaded.store, number, sum(_taken_part(loaded, s) for s in same))
        cases = sampled(loaded.file, loaded.store, number)
        if told := stale(loaded.file, loaded.store, number):
            click.echo(f"WARNING: {told}")
        sampler = "stereotype" if number == 3 else section.sampler
        chances = sorted(cases.values())
        click.echo(f"{len(cases):,} cases ({sampler}), inclusion probability {chances[0]:.4f} to {chances[-1]:.4f}\n")
        table = margins(loaded.file, loaded.store, cases)
        wide = max(10, 2 + max(map(len, table["factor"])))
        click.echo(f"{'factor':{wide}}{'level':28}{'cases':>7}{'share':>8}")
        for row in table.itertuples():
            click.echo(f"{row.factor:{wide}}{row.level:28}{row.cases:>7}{row.share:>8.1%}")


@survey.command()
@click.argument("study", type=click.Path(path_type=Path), required=False)
@click.option("--preset", type=click.Choice(["paper-prolific", "plan-002"]), help="A published plan, without a study.")
@click.option("--no-gold", is_flag=True, help="plan-002 without its gold items.")
@click.option("--pay", type=click.FloatRange(min=0), help="What a task pays.")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="How long a task takes.")
@click.option("--minimum", type=click.FloatRange(min=0), help="The least an hour should pay.")
@click.option("--fee", type=click.FloatRange(min=0), help="The platform's fee as a share of the pay.")
@example("evenedit survey plan --preset paper-prolific --minimum 12")
def plan(
    study: Path | None,
    preset: str | None,
    no_gold: bool,
    pay: float | None,
    minutes: float | None,
    minimum: float | None,
    fee: float | None,
) -> None:
    """Show the budget of a survey: tasks, people, hours, pay, fees.

    With the pay per hour and the total.
    """
    from dataclasses import replace

    from evenedit.core.errors import EvenEditError
    from evenedit.survey import cost as planner

    if (study is None) == (preset is None):
        raise EvenEditError("name a study or a --preset (paper-prolific, plan-002)")
    if preset:
        made = planner.preset(preset, gold=not no_gold)
    else:
        assert study is not None
        loaded = open_study(study)
        section = _section(loaded)
        mitigation = loaded.file.sections.experiments.mitigation
        editors = loaded.file.editors("stereotype")
        pairs = mitigation.cases if mitigation else 0
        roles = len(loaded.file.wino) * sum(len(e.seeds) for e in editors)
        made = planner.of_study(section, {2: pairs, 3: roles})
    given = {"per_task": pay, "minutes_per_task": minutes, "minimum_per_hour": minimum, "fee": fee}
    changes = {name: value for name, value in given.items() if value is not None}
    _show(replace(made, pay=made.pay.model_copy(update=changes)))


def _show(made: SurveyBudget) -> None:
    click.echo(
        f"{'survey':28}{'items':>7}{'per task':>10}{'gold':>6}{'raters':>8}{'tasks':>7}{'people':>8}{'ratings':>9}"
    )
    for part in made.parts:
        click.echo(
            f"{part.name:28}{part.items:>7,}{part.items_per_task:>10}{part.gold:>6}{part.raters:>8}"
            f"{part.tasks:>7}{part.people:>8}{part.ratings:>9,}"
        )
    money = made.pay.currency
    click.echo(f"\n{made.tasks} tasks, {made.people} people, {made.hours:,.1f} hours of their work")
    click.echo(
        f"pay {made.pay.per_task:.2f} {money} a task of {made.pay.minutes_per_task:g} min: {made.per_hour:.2f} per hour"
    )
    click.echo(f"rewards {made.rewards:,.2f} + fees {made.fees:,.2f} = {made.total:,.2f} {money}")
    for text in made.notes:
        click.echo(f"note: {text}")
    for text in made.warnings:
        click.echo(f"WARNING: {text}")


@survey.command()
@STUDY
@example("evenedit survey status my-study")
def status(study: Path) -> None:
    """Show the progress of a survey.

    Slots by task, how visits ended, and the quality of each participant's answers.
    """
    from evenedit.survey.admin import SurveyAdmin
    from evenedit.survey.sample import stale
    from evenedit.survey.visits import VisitEnding

    loaded = open_study(study)
    for number in _section(loaded).surveys:
        if told := stale(loaded.file, loaded.store, number):
            click.echo(f"WARNING: {told}")
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
    """Write ratings, choices and data quality, under pseudonyms. As CSV and Parquet."""
    from evenedit.survey.export import write

    loaded = open_study(study)
    with _reading(loaded) as database:
        for path in write(loaded.file, loaded.store, database, out or folder_of(study) / "ratings"):
            click.echo(path)


@survey.command()
@STUDY
@example("evenedit survey participants my-study")
def participants(study: Path) -> None:
    """Show who rated: the paper's Table 17.

    Answers of fewer than five people are put together.
    """
    from evenedit.survey.answers import PeopleRatings
    from evenedit.survey.profiles import OTHER

    known = PeopleRatings(open_study(study).file).profiles
    if known is None or not known.counts:
        click.echo("nothing is known of the participants, or of fewer than five")
        return
    for row in known.counts:
        cells = [*row.counts.items(), *([(OTHER, row.rest)] if row.rest else [])]
        told = ", ".join(f"{answer} {n} ({n / row.people:.1%})" for answer, n in cells)
        ages = "" if row.mean is None else f"{row.mean:.1f} ± {row.deviation:.1f} years; "
        click.echo(f"survey {row.survey}, {row.people} people, {row.title}: {ages}{told}")


@survey.command("import")
@STUDY
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@EDITOR_NAMES
@ACTOR
@example("evenedit survey import my-study ratings.csv --editor flux=flux2-dev")
def import_(study: Path, files: tuple[Path, ...], editors: dict[str, str], actor: str) -> None:
    """Import people's ratings that another tool collected.

    A long CSV, or results of Mechanical Turk.
    """
    from evenedit.storage.survey_store import SurveyStore
    from evenedit.survey import import_csv as imports
    from evenedit.survey.answers import people_frame

    loaded = open_study(study)
    _section(loaded)
    database = SurveyStore(loaded.file.folder, loaded.file.sections.store.url)
    try:
        for path in files:
            imported = imports.read(path, database, loaded.file, loaded.store, editors, actor)
            click.echo(
                f"{path}: {imported.pages:,} ratings of {imported.raters} people ({imported.answers:,} answers)"
                + (f"; {imported.rejected} rejected assignments left out" if imported.rejected else "")
            )
        for quality in people_frame(loaded.file, database)[1]:
            _print_quality(quality)
    finally:
        database.close()


@survey.command()
@STUDY
@click.argument("who")
@click.option("--platform", help="WHO is an id of this platform (prolific, panel, invitation), not a pseudonym.")
@ACTOR
@example("evenedit survey withdraw my-study person-3f2a9c01d4e7")
def withdraw(study: Path, who: str, platform: str | None, actor: str) -> None:
    """Erase a participant's answers and ids, and free the slot."""
    from evenedit.core.errors import EvenEditError
    from evenedit.survey.admin import SurveyAdmin

    with _service(study) as service:
        if platform is None:
            SurveyAdmin(service).withdraw(who, actor)
        elif not SurveyAdmin(service).withdraw_external(platform, who, actor):
            raise EvenEditError(f"nobody with that id came from {platform}")
    click.echo("erased; the slot is free again")


@survey.command()
@STUDY
@click.argument("pseudonym")
@ACTOR
@example("evenedit survey release my-study person-3f2a9c01d4e7")
def release(study: Path, pseudonym: str, actor: str) -> None:
    """Free a participant's slot. The answers are kept but no longer counted."""
    from evenedit.survey.admin import SurveyAdmin

    with _service(study) as service:
        had = SurveyAdmin(service).release(pseudonym, actor)
    click.echo("the slot is free again" if had else "the participant held no slot")


@survey.command()
@STUDY
@click.option("--base", required=True, help="The address participants open, https://…")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True, help="How many links.")
@click.option("--prefix", default="guest", show_default=True, help="Names are PREFIX-001, PREFIX-002 …")
@click.option(
    "--survey", "number", type=click.IntRange(0, 3), default=0, help="Which survey; the study's first by default."
)
@click.option("--preview", is_flag=True, help="One link to previews instead: they never count; it works for 7 days.")
@example("evenedit survey invite my-study --base https://survey.example --count 30")
def invite(study: Path, base: str, count: int, prefix: str, number: int, preview: bool) -> None:
    """Print signed invitation links, one per person."""
    from evenedit.survey.platforms import Invitations
    from evenedit.survey.previews import PreviewLinks

    loaded = open_study(study)
    with _reading(loaded) as database:
        if preview:
            click.echo(PreviewLinks(database.key).link(base, number))
            return
        invitations = Invitations(database.key)
        for one in range(1, count + 1):
            click.echo(invitations.link(base, f"{prefix}-{one:03d}", number))


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
@example("evenedit survey prolific create my-study --base https://survey.example")
def prolific() -> None:
    """Draft a study on Prolific, follow submissions, approve them.

    The token is read from PROLIFIC_TOKEN.
    """


@prolific.command()
@STUDY
@click.option("--base", required=True, help="The address participants open, https://…")
@click.option("--survey", "number", type=click.IntRange(1, 3), default=1, show_default=True, help="Which survey.")
@click.option("--title", default="Compare edited portraits", show_default=True, help="What participants see.")
@click.option(
    "--description",
    default="Look at portraits and edited versions of them, and answer questions.",
    show_default=True,
    help="The text below the title.",
)
@example("evenedit survey prolific create my-study --base https://survey.example")
def create(study: Path, base: str, number: int, title: str, description: str) -> None:
    """Draft a study with a code for each ending.

    You publish it on Prolific's own page.
    """
    from evenedit.survey.prolific import ProlificAPI, draft

    with _service(study) as service:
        body = draft(service.section, service, title=title, description=description, base=base, survey=number)
        ident = ProlificAPI(service.section.platform.api).create(body)
    click.echo(f"drafted {ident}: {body['total_available_places']} places at {body['reward'] / 100:.2f}")
    click.echo(f'add it to study.toml: [survey.platform] kind = "prolific", study_ids = ["{ident}"]; then publish it')


@prolific.command("status")
@STUDY
@click.argument("ident", metavar="PROLIFIC_STUDY")
@click.option("--approve", is_flag=True, help="Pay everybody who completed the task with the right code.")
@example("evenedit survey prolific status my-study 60aca280709ee40ec37d4885 --approve")
def follow(study: Path, ident: str, approve: bool) -> None:
    """Compare Prolific's submissions with the survey's.

    Slots of returned ones are freed.
    """
    from evenedit.survey.prolific import ProlificAPI, Rejections, sync

    with _service(study) as service:
        api = ProlificAPI(service.section.platform.api)
        result = sync(service, api, ident)
        click.echo(f"{result.submissions} submissions; {result.released} slots freed; {len(result.payable)} to approve")
        for submission in result.payable if approve else ():
            api.approve(submission.id)
            click.echo(f"approved {submission.id}")
        for submission in result.doubtful:
            click.echo(f"check {submission.id}: not completed here, or with another code ({submission.code or 'none'})")
        for case in Rejections(service).waiting():
            click.echo(f"{case.pseudonym} failed {case.failed} of {case.asked} instructed checks and awaits a decision")


@prolific.command()
@STUDY
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--consented", is_flag=True, help="All in the file agreed elsewhere to their data being used, ethnicity included."
)
@ACTOR
@example("evenedit survey prolific demographics my-study prolific_demographic_export.csv")
def demographics(study: Path, file: Path, consented: bool, actor: str) -> None:
    """Import Prolific's demographic export.

    Of those who agreed to it; shown are only counts of five people or more.
    """
    from evenedit.storage.survey_store import SurveyStore
    from evenedit.survey.demographics_csv import import_profiles

    loaded = open_study(study)
    section = _section(loaded)
    database = SurveyStore(loaded.file.folder, loaded.file.sections.store.url)
    try:
        found = import_profiles(file, database, section, actor, consented=consented)
    finally:
        database.close()
    click.echo(f"{file}: {found.rows} rows, stored of {found.people} people")
    for count, why in (
        (found.strangers, "never came here"),
        (found.unasked, "have not agreed to it"),
        (found.without_sensitive, "stored without what needs a consent of its own (ethnicity)"),
        (found.revoked, "took back their consent on Prolific for some value or all (CONSENT_REVOKED)"),
        (found.expired, "have expired data on Prolific (DATA_EXPIRED)"),
    ):
        if count:
            click.echo(f"{count} {why}")


@prolific.command()
@STUDY
@click.argument("ident", metavar="PROLIFIC_STUDY")
@click.argument("pseudonym")
@click.argument("decision", type=click.Choice(["approve", "return", "reject"]))
@click.option("--message", default="", help="Message to the participant; 100 characters or more for a rejection.")
@ACTOR
@example("evenedit survey prolific decide my-study 60aca280709ee40ec37d4885 person-3f2a9c01d4e7 approve")
def decide(study: Path, ident: str, pseudonym: str, decision: str, message: str, actor: str) -> None:
    """Decide about a submission that failed instructed checks.

    A rejection must meet Prolific's rules.
    """
    from evenedit.survey.prolific import ProlificAPI, Rejections

    with _service(study) as service:
        if decision == "reject":
            click.confirm(f"Reject the work of {pseudonym}, who will not be paid?", abort=True)
        Rejections(service, ProlificAPI(service.section.platform.api), ident).decide(
            pseudonym, decision, actor, message
        )
    click.echo(f"{decision}: done")


def _section(loaded: Study) -> SurveySection:
    from evenedit.core.errors import EvenEditError

    section = loaded.file.sections.survey
    if section is None:
        raise EvenEditError("study.toml has no [survey]; add the table to ask people")
    return section


def _taken_part(loaded: Study, survey: int) -> int:
    """How many people have arrived for a survey; nobody where there is no survey yet."""
    from evenedit.storage.survey_schema import DATABASE
    from evenedit.survey.admin import SurveyAdmin
    from evenedit.survey.sessions import SurveyService

    if not loaded.file.sections.store.url and not (loaded.file.folder / DATABASE).exists():
        return 0
    service = SurveyService.open(loaded.file, loaded.store, write=False)
    try:
        return SurveyAdmin(service).taken_part(survey)
    finally:
        service.close()


@contextmanager
def _service(study: Path, *, write: bool = True) -> Iterator[SurveyService]:
    from evenedit.survey.sessions import SurveyService

    loaded = open_study(study)
    service = SurveyService.open(loaded.file, loaded.store, write=write)
    try:
        yield service
    finally:
        service.close()


@contextmanager
def _reading(loaded: Study) -> Iterator[SurveyStore]:
    from evenedit.storage.survey_store import SurveyStore

    database = SurveyStore(loaded.file.folder, loaded.file.sections.store.url, write=False)
    try:
        yield database
    finally:
        database.close()
