"""Commands for those who try things out."""

from __future__ import annotations

from pathlib import Path

import click

from evenedit.cli.base import CommandGroup, example

MODES = (
    *("success", "rate-limit", "rate-limit-told", "server-error", "slow", "drop", "refusal"),
    *("truncated", "prose", "strings", "seven", "half", "null", "missing-axis", "extra-keys", "huge"),
)


@click.group(cls=CommandGroup)
@example("evenedit dev fake-provider --latency 1")
def dev() -> None:
    """For those who build and try things out."""


@dev.command("fake-provider")
@click.option("--port", default=8765, show_default=True, help="Where to listen, on this machine only; 0 picks one.")
@click.option("--latency", default=0.0, show_default=True, help="Seconds before an answer.")
@click.option("--limit", type=click.IntRange(min=1), help="More calls than this at once get 429.")
@click.option("--per-second", type=click.FloatRange(min=0.1), help="More calls than this in a second get 429.")
@click.option("--mode", type=click.Choice(MODES), default="success", show_default=True, help="What it does …")
@click.option("--share", default=1.0, show_default=True, help="… in this share of the calls; the others succeed.")
@click.option("--seed", default=0, show_default=True, help="Draws which calls those are.")
@click.option("--batch-seconds", default=5.0, show_default=True, help="How long a batch job is under way.")
@example("evenedit dev fake-provider --port 8765 --latency 1 --limit 16 --mode refusal --share 0.1")
def fake_provider(
    port: int,
    latency: float,
    limit: int | None,
    per_second: float | None,
    mode: str,
    share: float,
    seed: int,
    batch_seconds: float,
) -> None:
    """Serve made-up answers in OpenAI's and Gemini's formats.

    On this machine only, SIMULATED: every score it gives is made up. It knows only models whose name begins with
    'simulated-', so that no study against it can pass as real.
    """
    from evenedit.core.errors import EvenEditError
    from evenedit.simulation.provider.modes import mixed
    from evenedit.simulation.provider.server import FakeProvider

    try:
        wire = FakeProvider(
            port,
            latency=latency,
            concurrent=limit,
            per_second=per_second,
            otherwise=mixed(mode, share, seed),
            marked=True,
            remember=False,
        )
    except OSError as error:
        raise EvenEditError(f"port {port} cannot be used ({error.strerror}). Try: --port 0") from None
    wire.queue.seconds = batch_seconds
    click.echo(f"SIMULATED provider: every score it gives is made up.\nopenai  base_url = {wire.openai}")
    click.echo(f"gemini  base_url = {wire.gemini}\nAny key will do; models are called 'simulated-…'. Stop with Ctrl-C.")
    try:
        wire.serve()
    except KeyboardInterrupt:
        click.echo(f"{wire.asked:,} calls came in, {wire.served:,} were let in")


@dev.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--editor", default="simulated-lightening", show_default=True, help="The simulated editor that edits.")
@click.option("--prompt", "prompts", multiple=True, default=("O-01", "V-02"), help="A prompt's id; may be given again.")
@click.option("--seed", default=1, show_default=True, help="Draws other people and other edits.")
@click.option("--size", default=256, show_default=True, type=click.IntRange(min=64), help="Pixels of a side.")
@example("evenedit dev pictures edits")
def pictures(folder: Path, editor: str, prompts: tuple[str, ...], seed: int, size: int) -> None:
    """Draw portraits and edits of them, to try an audit on.

    Eight drawn people in portraits/ with their labels.csv, SIMULATED edits of them in edited/, and edits.csv, the table
    of pairs.
    """
    from evenedit.simulation.pictures import write_pictures

    click.echo(write_pictures(folder, editor=editor, prompts=prompts, seed=seed, size=size))
