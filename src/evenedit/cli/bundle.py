"""Commands that hand a study over: seal, bundle, verify, rescore, publish, withdraw."""

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
    help="Pictures in it: none, thumbnails, or thumbnails and full size; digests always.",
)
@click.option(
    "--people",
    type=click.Choice(["answers", "none"]),
    default="answers",
    show_default=True,
    help="Answers by people under new pseudonyms, or none.",
)
@click.option("--sign", "key", type=click.Path(path_type=Path), help="Ed25519 private key (PEM) to sign it with.")
@example(
    "evenedit bundle my-study --out audit.zip\n"
    "evenedit bundle my-study --out audit.zip --pictures thumbnails --sign key.pem"
)
def bundle(study: Path, out: Path, pictures: str, people: str, key: Path | None) -> None:
    """Write a study as one verifiable file.

    It holds the study file, prompts, rubric, requests, raw replies, readings, ratings, results and report, each with
    its SHA-256; the same study gives the same bytes. Pictures need [sources] licence and publish = true in study.toml.
    """
    from evenedit.bundle.writer import make_bundle
    from evenedit.study.results_file import refuse_results_alone

    refuse_results_alone(study)
    written = make_bundle(open_study(study), out, pictures=pictures, people=people, key=key)  # type: ignore[arg-type]
    click.echo(f"{out}: {len(written.bundle.files):,} files, {written.size / 1e6:,.1f} MB")
    if written.replies.differ:
        click.echo(f"{len(written.replies.differ):,} stored answers differ from the raw replies; the replies count")
    click.echo(f"root {written.bundle.root}")
    click.echo("publish the root with a public date: the writer of a bundle can also rewrite it")


@click.command()
@STUDY
@example("evenedit seal my-study")
def seal(study: Path) -> None:
    """Freeze a study's plan before the first edit.

    Freezes hypotheses, portraits, prompts, editors, judges, exclusions and rules. The report then marks findings as
    confirmatory or exploratory, and lists all later changes with their old and new values.
    """
    from evenedit.study.preregistration.seal import seal_study

    sealed = seal_study(open_study(study))
    click.echo(
        f"sealed {sealed.sealed}: {len(sealed.plan['hypotheses']):,} hypotheses, "
        f"{len(sealed.plan['portraits']):,} portraits"
    )
    click.echo(f"seal {sealed.digest}")
    click.echo("publish the seal with a public date: the writer of a seal can also rewrite it")


@click.command()
@BUNDLE
@click.option("--root", default="", help="The root as published.")
@click.option("--seal", default="", help="The seal of the study's plan as published.")
@click.option("--key", default="", help="The signer's public key (hex) as published.")
@click.option("--pictures", type=click.Path(path_type=Path), help="Folder of pictures to compare with the digests.")
@example("evenedit verify audit.zip\nevenedit verify audit.zip --root 3f9c… --pictures portraits")
def verify(file: Path, root: str, seal: str, key: str, pictures: Path | None) -> None:
    """Check whether a bundle is intact, and list the changes.

    Exit code 0 = intact, 1 = changed. The writer of a bundle can rewrite its hashes: compare with a root, a seal or a
    key from an independent source.
    """
    from evenedit.bundle.verification import verify as verify_bundle

    report = verify_bundle(file, root=root, seal=seal, key=key, pictures=pictures)
    problems = list(report.problems())
    for line in problems:
        click.echo(line)
    for change in report.plan:
        click.echo(f"not as sealed: {change.what}: {change.before} → {change.after}")
    for line in report.notes:
        click.echo(f"note: {line}")
    if report.changes.withdrawn:
        click.echo(f"{len(report.changes.withdrawn):,} withdrawn: their answers were removed after it was sealed")
    if report.left_before:
        click.echo(f"{report.left_before:,} withdrawn from the study before it was bundled")
    if report.pictures is not None:
        pictures_found = report.pictures
        click.echo(f"pictures: {pictures_found.known:,} match the bundle, {pictures_found.absent:,} not in the folder")
    if report.signed is not None and report.signed.valid:
        click.echo(f"{report.signed}")
    if report.facts.get("simulated"):
        click.echo("SIMULATED: these data say nothing about any real editor")
    if report.seal:
        click.echo(f"seal {report.seal}")
    click.echo(f"root {report.root}" if report.root else "no root can be read")
    others = " (the bundle; other pictures are in the folder)" if problems else ""
    click.echo("changed" if list(report.faults()) else f"intact{others}")
    sys.exit(1 if problems else 0)


@click.command()
@BUNDLE
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option(
    "--rules", default="", help="Other rules: a TOML file, `default` or `published`; default: those of the bundle."
)
@example("evenedit rescore audit.zip --out again\nevenedit rescore audit.zip --out published --rules published")
def rescore(file: Path, out: Path, rules: str) -> None:
    """Recompute a bundle's results, offline.

    Writes results.json, equal to the bundle's byte for byte under its own rules, and rescore.json. Exit code 0 = equal,
    or --rules was used; 1 = differences, which are listed. A file of rules has tables of study.toml: [study] preset,
    [ensemble], [thresholds], [statistics], [findings].
    """
    from evenedit.bundle.rescoring import rescore as rescore_bundle

    result = rescore_bundle(file, out, rules)
    replies = result.replies
    click.echo(f"{replies.from_raw:,} replies parsed again; {replies.as_stored:,} unreadable, taken as stored")
    if replies.differ:
        click.echo(f"{len(replies.differ):,} replies differ from the stored answers; the replies count")
    if result.withdrawn:
        click.echo(f"{result.withdrawn:,} withdrawn since: numbers based on their answers differ")
    for line in result.differences:
        click.echo(line)
    for name in result.untrue:
        click.echo(f"{name}: does not follow from the bundle's evidence")
    if not result.identical and not rules:
        from evenedit.core.version import __version__

        click.echo(f"the bundle was made with EvenEdit {result.made_with}; this is {__version__}")
    same = result.identical and not result.untrue
    click.echo("identical" if same else "other rules" if rules else "differs")
    click.echo(out / "results.json")
    sys.exit(0 if same or rules else 1)


TREATMENT = click.Choice(["show", "blur", "withhold"])


@click.command()
@BUNDLE
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write to.")
@click.option("--portraits", type=TREATMENT, default="show", show_default=True, help="Source portraits.")
@click.option("--outputs", type=TREATMENT, default="show", show_default=True, help="Edited pictures.")
@click.option("--contact", default="", help="Contact for requests about pictures.")
@example("evenedit publish audit.zip --out site --portraits blur --contact audit@example.org")
def publish(file: Path, out: Path, portraits: str, outputs: str, contact: str) -> None:
    """Write a bundle as a static site.

    Findings, a page for each edit, filters, downloads and a notice about the pictures. Any file server can host it.
    """
    from evenedit.bundle.publishing import PicturePolicy
    from evenedit.bundle.publishing import publish as write_site

    site = write_site(file, out, PicturePolicy(portraits, outputs), contact)  # type: ignore[arg-type]
    click.echo(f"{site.cases:,} edits, {site.files:,} files, {site.size / 1e6:,.1f} MB")
    click.echo(site.page)


@click.command()
@BUNDLE
@click.argument("people", nargs=-1, required=True)
@click.option("--out", required=True, type=click.Path(path_type=Path), help="The file to write.")
@example("evenedit withdraw audit.zip person-0007 --out audit-2.zip")
def withdraw(file: Path, people: tuple[str, ...], out: Path) -> None:
    """Remove people's answers from a bundle without changing its root.

    PEOPLE are pseudonyms in the bundle. A tombstone stays: the digest of the removed file and the date.
    """
    from datetime import UTC, datetime

    from evenedit.bundle.archive import WITHDRAWABLE, open_bundle, withdraw_files
    from evenedit.core.errors import EvenEditError

    if out.exists():
        raise EvenEditError(f"{out} exists already; name a new file")
    day = datetime.now(UTC).date().isoformat()
    bundle = withdraw_files(open_bundle(file), {f"{WITHDRAWABLE}{name}.jsonl": day for name in people}, out)
    click.echo(f"{out}: {len(bundle.withdrawn()):,} withdrawn, root {bundle.root} unchanged")
