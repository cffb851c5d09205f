"""The command about the models of services: what they cost, when they are retired, and where that is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenedit.cli.base import example

if TYPE_CHECKING:
    from evenedit.providers.registry import KnownModel


@click.command()
@click.option("--use", type=click.Choice(["editor", "judge"]), help="Only models that edit, or only those that judge.")
@click.option("--prices", type=click.Path(path_type=Path), help="Your own file of models and prices (TOML), on top.")
@click.option("--sources", is_flag=True, help="Print every fact with its source and date.")
@example("evenedit models --use judge\nevenedit models --sources")
def models(use: str | None, prices: Path | None, sources: bool) -> None:
    """List known models of services: price, limits, retirement."""
    from datetime import date

    from evenedit.providers.prices import Prices

    loaded = Prices.load(prices)
    chosen = [m for _, m in sorted(loaded.models.items()) if use is None or use in m.use]
    if sources:
        for model in chosen:
            _print_facts(model)
        return
    click.echo(f"{'model':34}{'provider':10}{'for':8}{'US$':32}{'tokens in':>11}  retired")
    for model in chosen:
        known = model.get("context", "input")
        context = f"{known:,}" if known else "–"
        line = f"{model.id:34}{model.provider:10}{', '.join(model.use):8}{_price(model):32}{context:>11}"
        click.echo(f"{line}  {_retired(model, date.today())}")
    click.echo(f"\nas of {loaded.date}; '–' is not known. Where each fact is from: evenedit models --sources")


def _price(model: KnownModel) -> str:
    edit = model.get("price", "edit")
    if isinstance(edit, dict):
        return f"{min(edit.values()):g} to {max(edit.values()):g} an edit"
    if edit is not None:
        return f"{edit:g} an edit"
    way_in, way_out = model.get("price", "input"), model.get("price", "output")
    return "–" if way_in is None or way_out is None else f"{way_in:g} in, {way_out:g} out a million"


def _retired(model: KnownModel, today: object) -> str:
    day, instead = model.get("retires", "on"), model.get("retires", "replaced_by")
    if day is None:
        return "–"
    state = "RETIRED " if day <= str(today) and not model.get("retires", "earliest") else ""
    earliest = "at the earliest " if model.get("retires", "earliest") else ""
    return f"{state}{earliest}{day}" + (f", use {instead}" if instead else "")


def _print_facts(model: KnownModel) -> None:
    click.echo(model.id)
    for name, fact in model.facts.items():
        values = ", ".join(f"{key} = {value}" for key, value in fact.values.items())
        click.echo(f"  {name:9}{values}\n           {fact.origin}")
