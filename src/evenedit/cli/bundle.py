"""Commands that hand a study over whole, check it and score it again."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from evenedit.cli.base import STUDY, example, open_study

BUNDLE = click.argument("file", type=click.Path(path_type=Path))


@click.command()
@STUDY
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file to write, such as audit.zip.")
@click.option(
    "--pictures",
    type=click.Choice(["none", "thumbnails", "full"]),
    default="none",
    show_default=True,
    help="Pictures in it: none, small ones, or those in full size too; digests always.",
)
@click.option(
    "--people",
    type=click.Choice(["answers", "none"]),
    default="answers",
    show_default=True,
    help="What people answered, under new names; or nothing of theirs.",
)
@click.option("--sign", "key", type=click.Path(path_type=Path), help="An Ed25519 private key (PEM) that signs it.")
@example(
    "evenedit bundle my-study --out audit.zip\n"
    "evenedit bundle my-study --out audit.zip --pictures thumbnails --sign key.pem"
)
def bundle(study: Path, out: Path, pictures: str, people: str, key: Path | None) -> None:
    """Write a study as one file that anybody can check.

    With the study file, prompts, rubric, requests, raw replies, readings, ratings, results and report, each by its
    SHA-256; the same study gives the same bytes. Pictures need [sources] licence and publish = true in study.toml.
    """
    from evenedit.bundle.making import make_bundle
    from evenedit.study.load_results import refuse_results_alone

    refuse_results_alone(study)
    made = make_bundle(open_study(study), out, pictures=pictures, people=people, key=key)  # type: ignore[arg-type]
    click.echo(f"{out}: {len(made.bundle.files):,} files, {made.size / 1e6:,.1f} MB")
    if made.again.differ:
        click.echo(f"{len(made.again.differ):,} stored answers are not what the raw replies say; the replies count")
    click.echo(f"root {made.bundle.root}")
    click.echo("publish the root where its date can be seen: a bundle alone proves nothing against its own writer")


@click.command()
@STUDY
@example("evenedit seal my-study")
def seal(study: Path) -> None:
    """Freeze a study's plan before the first edit.

    Its hypotheses, portraits, prompts, editors, judges, exclusions and rules. Afterwards the report marks findings as
    confirmatory or exploratory, and tells on top what was changed since, with before and after.
    """
    from evenedit.study.seal import seal_study

    made = seal_study(open_study(study))
    click.echo(
        f"sealed {made.sealed}: {len(made.plan['hypotheses']):,} hypotheses, {len(made.plan['portraits']):,} portraits"
    )
    click.echo(f"seal {made.digest}")
    click.echo("publish the seal where its date can be seen: a seal alone proves nothing against its own writer")


@click.command()
@BUNDLE
@click.option("--root", default="", help="The root as you have it from elsewhere.")
@click.option("--seal", default="", help="The seal of the study's plan as you have it from elsewhere.")
@click.option("--key", default="", help="The signer's public key (hex) as you have it from elsewhere.")
@click.option("--pictures", type=click.Path(path_type=Path), help="Pictures to hold against the digests: a folder.")
@example("evenedit verify audit.zip\nevenedit verify audit.zip --root 3f9c… --pictures portraits")
def verify(file: Path, root: str, seal: str, key: str, pictures: Path | None) -> None:
    """Say whether a bundle is intact, or what was changed.

    Exit code 0 = intact, 1 = something is not as it was. Whoever can write a bundle can write its hashes too: only a
    root, a seal or a key that you have from elsewhere shows that it is the bundle you mean.
    """
    from evenedit.bundle.verification import verify as look

    found = look(file, root=root, seal=seal, key=key, pictures=pictures)
    problems = list(found.problems())
    for line in problems:
        click.echo(line)
    for change in found.plan:
        click.echo(f"not as sealed: {change.what}: {change.before} → {change.after}")
    for line in found.notes:
        click.echo(f"note: {line}")
    if found.changes.withdrawn:
        click.echo(f"{len(found.changes.withdrawn):,} withdrawn: their answers were removed after it was sealed")
    if found.left_before:
        click.echo(f"{found.left_before:,} withdrawn from the study before it was bundled")
    if found.pictures is not None:
        held = found.pictures
        click.echo(f"pictures: {held.known:,} are those of the bundle, {held.absent:,} not presented")
    if found.signed is not None and found.signed.valid:
        click.echo(f"{found.signed}")
    if found.facts.get("simulated"):
        click.echo("SIMULATED: these data say nothing about any real editor")
    if found.seal:
        click.echo(f"seal {found.seal}")
    click.echo(f"root {found.root}" if found.root else "no root can be read")
    others = " (the bundle; other pictures were presented)" if problems else ""
    click.echo("changed" if list(found.faults()) else f"intact{others}")
    sys.exit(1 if problems else 0)


@click.command()
@BUNDLE
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option("--rules", default="", help="Other rules: a TOML file, default or published; its own when left out.")
@example("evenedit rescore audit.zip --out again\nevenedit rescore audit.zip --out published --rules published")
def rescore(file: Path, out: Path, rules: str) -> None:
    """Compute a bundle's results again, offline.

    Writes results.json, byte for byte the bundle's under its own rules, and rescore.json. Exit code 0 = the same, or
    other rules were asked for; 1 = something differs, which is told. A file of rules has tables of study.toml:
    [study] preset, [ensemble], [thresholds], [statistics], [findings].
    """
    from evenedit.bundle.rescoring import rescore as again

    found = again(file, out, rules)
    seen = found.again
    click.echo(f"{seen.from_raw:,} replies read again; {seen.as_stored:,} hold no readable answer, taken as stored")
    if seen.differ:
        click.echo(f"{len(seen.differ):,} replies say something else than what was stored; the replies count")
    if found.withdrawn:
        click.echo(f"{found.withdrawn:,} withdrawn since: numbers that rest on their answers differ")
    for line in found.differences:
        click.echo(line)
    for name in found.untrue:
        click.echo(f"{name}: not what follows from the bundle's evidence")
    if not found.identical and not rules:
        from evenedit.core.version import __version__

        click.echo(f"the bundle was made with EvenEdit {found.made_with}; this is {__version__}")
    same = found.identical and not found.untrue
    click.echo("identical" if same else "other rules" if rules else "differs")
    click.echo(out / "results.json")
    sys.exit(0 if same or rules else 1)


SHOWN = click.Choice(["show", "blur", "withhold"])


@click.command()
@BUNDLE
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option("--portraits", type=SHOWN, default="show", show_default=True, help="What is done with source portraits.")
@click.option("--outputs", type=SHOWN, default="show", show_default=True, help="What is done with edited pictures.")
@click.option("--contact", default="", help="Whom to write to about a picture.")
@example("evenedit publish audit.zip --out site --portraits blur --contact audit@example.org")
def publish(file: Path, out: Path, portraits: str, outputs: str, contact: str) -> None:
    """Write a bundle as a static site.

    Findings, a page for each edit, filters, downloads and a note about pictures. It needs no server of its own.
    """
    from evenedit.bundle.publishing import PicturePolicy
    from evenedit.bundle.publishing import publish as write

    made = write(file, out, PicturePolicy(portraits, outputs), contact)  # type: ignore[arg-type]
    click.echo(f"{made.cases:,} edits, {made.files:,} files, {made.size / 1e6:,.1f} MB")
    click.echo(made.page)


@click.command()
@BUNDLE
@click.argument("people", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file to write.")
@example("evenedit withdraw audit.zip person-0007 --out audit-2.zip")
def withdraw(file: Path, people: tuple[str, ...], out: Path) -> None:
    """Remove people's answers from a bundle; its root stays.

    PEOPLE are their names in the bundle. Each leaves a tombstone: the digest of what was removed, and the day.
    """
    from datetime import UTC, datetime

    from evenedit.core.errors import EvenEditError
    from evenedit.core.sealed_zip import WITHDRAWABLE, without
    from evenedit.study.load_results import open_bundle

    if out.exists():
        raise EvenEditError(f"{out} is there already; name a new file")
    day = datetime.now(UTC).date().isoformat()
    made = without(open_bundle(file), {f"{WITHDRAWABLE}{name}.jsonl": day for name in people}, out)
    click.echo(f"{out}: {len(made.withdrawn()):,} withdrawn, root {made.root} as before")
