"""Command for installed plug-ins: list them, set one up, try an endpoint, list known models."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenedit.cli.base import example, split_pairs

if TYPE_CHECKING:
    from evenedit.providers.registry import KnownModel

GROUPS = ("editors", "judges", "instruments", "sources", "extractors")
SETUPS = ("step1x", "step1x-edit-v1p2", "age")
"""Plug-ins that need to be set up once."""


@click.command()
@click.argument("name", required=False)
@click.option(
    "--setup", is_flag=True, help="Set NAME up: the environment of step1x (prints the steps), the model of age."
)
@click.option("--run", "perform", is_flag=True, help="With --setup: perform the steps instead of printing them.")
@click.option("--models", is_flag=True, help="List known models and prices; with NAME, its facts and their sources.")
@click.option("--probe", is_flag=True, help="Test the endpoint of the judge NAME, with the settings of --set.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    callback=lambda _context, option, pairs: split_pairs(option, pairs),
    help="A setting, for --probe (server, model, base_url …) or --setup (folder, package); can be repeated.",
)
@example(
    "evenedit plugins\n"
    "evenedit plugins age --setup\n"
    "evenedit plugins openai --probe --set server=ollama --set model=qwen3-vl:8b\n"
    "evenedit plugins --models"
)
def plugins(name: str | None, setup: bool, perform: bool, models: bool, probe: bool, settings: dict[str, str]) -> None:
    """List the installed plug-ins, set one up, or test an endpoint."""
    if models:
        _list_models(name)
    elif setup:
        _set_up(name, perform, settings)
    elif probe:
        if name is None:
            raise click.UsageError("--probe needs the kind of a judge, for example: evenedit plugins openai --probe")
        _probe(name, settings)
    else:
        _list_plugins(name)


def _list_plugins(name: str | None) -> None:
    from evenedit.core import plugins as registry
    from evenedit.core.errors import EvenEditError

    points = [(g, known, point) for g in GROUPS for known, point in sorted(registry.installed(g).items())]
    rows = [row for row in points if name in (None, row[1])]
    if not rows:
        raise EvenEditError(f"no plug-in is called '{name}'{registry.suggest(str(name), [row[1] for row in points])}")
    for group, known, point in rows:
        click.echo(f"{group.removesuffix('s'):12}{known:28}{point.value}")


def _set_up(name: str | None, perform: bool, settings: dict[str, str]) -> None:
    from evenedit.core.errors import EvenEditError

    if name not in SETUPS:
        raise EvenEditError(
            f"'{name}' needs no setup. Try: evenedit plugins step1x --setup, evenedit plugins age --setup"
        )
    option = "package" if name == "age" else "folder"
    if unknown := sorted(settings.keys() - {option}):
        raise EvenEditError(f"the setup of '{name}' has no setting '{unknown[0]}'; it has '{option}'")
    path = Path(settings[option]) if settings else None
    if name == "age":
        from evenedit.instruments import model_setup

        click.echo(model_setup.TERMS)
        click.echo(f"The model is in {model_setup.setup(path)}")
    else:
        from evenedit.editors.local import step1x

        step1x.setup(path, run=perform)


def _probe(kind: str, settings: dict[str, str]) -> None:
    from evenedit.core import plugins as registry

    judge = registry.build("judges", kind, {key: _typed(value) for key, value in settings.items()})
    if not print_probe(settings.get("model", kind), judge):
        sys.exit(1)


def _typed(text: str) -> Any:
    """Return a value as study.toml would read it, or the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def print_probe(name: str, judge: Any) -> bool:
    """Test what a judge's endpoint supports and print it; return False if the judge cannot be used."""
    from evenedit.judges.base import RemoteJudge
    from evenedit.judges.probe import probe

    click.echo(name)
    if not isinstance(judge, RemoteJudge):
        click.echo("     not a remote model; nothing to test")
        return True
    usable = True
    for finding in probe(judge):
        usable &= finding.good is not False
        mark = "ok  " if finding.good else "–   " if finding.good is None else "BAD "
        click.echo(f"{mark} {finding.what:20}{finding.note}")
    return usable


def _list_models(name: str | None) -> None:
    from datetime import date

    from evenedit.core import plugins as registry
    from evenedit.core.errors import EvenEditError
    from evenedit.providers.prices import Prices

    loaded = Prices.load(None)
    if name is not None:
        matches = [m for _, m in sorted(loaded.models.items()) if name in (m.id, m.provider)]
        if not matches:
            raise EvenEditError(f"no model or provider is called '{name}'{registry.suggest(name, loaded.models)}")
        for model in matches:
            _print_facts(model)
        return
    click.echo(f"{'model':34}{'provider':10}{'for':8}{'US$':32}{'tokens in':>11}  retired")
    for _, model in sorted(loaded.models.items()):
        known = model.get("context", "input")
        context = f"{known:,}" if known else "–"
        line = f"{model.id:34}{model.provider:10}{', '.join(model.use):8}{_price(model):32}{context:>11}"
        click.echo(f"{line}  {_retirement(model, date.today())}")
    click.echo(f"\nas of {loaded.date}; '–' is not known. Sources of a model's facts: evenedit plugins MODEL --models")


def _price(model: KnownModel) -> str:
    edit = model.get("price", "edit")
    if isinstance(edit, dict):
        return f"{min(edit.values()):g} to {max(edit.values()):g} per edit"
    if edit is not None:
        return f"{edit:g} per edit"
    inward, outward = model.get("price", "input"), model.get("price", "output")
    return "–" if inward is None or outward is None else f"{inward:g} in, {outward:g} out per million"


def _retirement(model: KnownModel, today: object) -> str:
    day, replacement = model.get("retires", "on"), model.get("retires", "replaced_by")
    if day is None:
        return "–"
    state = "RETIRED " if day <= str(today) and not model.get("retires", "earliest") else ""
    earliest = "at the earliest " if model.get("retires", "earliest") else ""
    return f"{state}{earliest}{day}" + (f", use {replacement}" if replacement else "")


def _print_facts(model: KnownModel) -> None:
    click.echo(model.id)
    for name, fact in model.facts.items():
        values = ", ".join(f"{key} = {value}" for key, value in fact.values.items())
        click.echo(f"  {name:9}{values}\n           {fact.origin}")
