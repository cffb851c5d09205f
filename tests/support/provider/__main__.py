"""Serve simulated answers in OpenAI's and Gemini's formats: `python -m tests.support.provider --port 8765`."""

from __future__ import annotations

import click

from tests.support.provider.modes import MODES, mixed
from tests.support.provider.server import FakeProvider


@click.command()
@click.option("--port", default=8765, show_default=True, help="Port on this machine; 0 picks a free one.")
@click.option("--latency", default=0.0, show_default=True, help="Seconds before an answer.")
@click.option("--limit", type=click.IntRange(min=1), help="Answer 429 above this number of concurrent calls.")
@click.option("--per-second", type=click.FloatRange(min=0.1), help="Answer 429 above this number of calls per second.")
@click.option("--mode", type=click.Choice(list(MODES)), default="success", show_default=True, help="Behaviour.")
@click.option("--share", default=1.0, show_default=True, help="Share of the calls with this mode; the others succeed.")
@click.option("--seed", default=0, show_default=True, help="Seed of the draw of these calls.")
@click.option("--batch-seconds", default=5.0, show_default=True, help="Duration of a batch job.")
def main(
    port: int,
    latency: float,
    limit: int | None,
    per_second: float | None,
    mode: str,
    share: float,
    seed: int,
    batch_seconds: float,
) -> None:
    """Serve simulated answers in OpenAI's and Gemini's formats, on loopback only."""
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
        raise click.ClickException(f"port {port} cannot be used ({error.strerror}). Try: --port 0") from None
    wire.queue.seconds = batch_seconds
    click.echo(f"SIMULATED provider: all scores are made up.\nopenai  base_url = {wire.openai}")
    click.echo(f"gemini  base_url = {wire.gemini}\nAny key works; models are named 'simulated-…'. Stop: Ctrl-C.")
    try:
        wire.serve()
    except KeyboardInterrupt:
        click.echo(f"{wire.asked:,} calls received, {wire.served:,} accepted")


if __name__ == "__main__":
    main()
