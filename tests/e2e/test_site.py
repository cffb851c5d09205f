"""The documentation as a site: it builds strictly and offline, and its references leave nothing out."""

import dataclasses
import html
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import evenedit
from evenedit.cases.review_queue import COLUMNS
from evenedit.cli import commands
from evenedit.config.sections import Sections
from evenedit.protocol import AXES, FACTORS
from evenedit.ratings.from_csv import OPTIONAL, VERDICT_COLUMNS, score_columns
from evenedit.results.results import Results
from evenedit.run.pair_table import EXAMPLE
from evenedit.survey.quality import Quality
from tests.support.documents import ROOT

GENERATE = ROOT / "scripts" / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture
def generate(monkeypatch: pytest.MonkeyPatch):
    """The modules that fill in pages."""
    monkeypatch.syspath_prepend(str(GENERATE))
    return importlib.import_module


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text("utf-8")))


def test_pages_load_nothing_from_elsewhere(site):
    loaded = r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=[\"']?((?:https?:)?//[^\"'\s>]+)"
    for page in site.rglob("*.html"):
        assert not re.findall(loaded, page.read_text("utf-8")), page.name


def test_no_page_shows_where_a_part_was_to_be_filled_in(site):
    for page in site.rglob("*.html"):
        assert "Filled in by" not in page.read_text("utf-8"), page


def test_no_word_of_a_docstring_is_taken_for_a_tag(site):
    known = r"axis|rate|rater|question|experiment|condition|judge|statistic|reading|factor|editor"
    for page in (site / "reference").rglob("*.html"):
        found = re.findall(rf"[\w.]*<(?:{known})>", page.read_text("utf-8"))
        assert not found, f"{page.parent.name}: put into backticks what has {found}"


def test_every_table_and_key_of_the_study_file_is_in_its_reference(site, generate):
    text = text_of(site / "reference/study-file/index.html")
    study_file = generate("study_file")
    for key in Sections.model_fields:
        assert f"[{key}" in text
    for name, model in study_file.sections(Sections):
        assert name in text
        for key in model.model_fields:
            assert study_file.said_of(model, key), f"{name} {key} has no docstring in config/sections.py"
            assert study_file.members(model.model_fields[key].annotation) or key in text
    for kind in ("simulated-lightening", "openai-images", "fairface"):
        assert kind in text


def every(command: click.Command, name: str):
    yield name, command
    for member in getattr(command, "commands", {}).values():
        yield from every(member, f"{name} {member.name}")


def test_every_command_and_option_is_in_its_reference(site):
    text = text_of(site / "reference/commands/index.html")
    for name, command in every(commands, "evenedit"):
        assert name in text
        for option in (p for p in command.params if isinstance(p, click.Option) and name != "evenedit"):
            assert option.opts[0] in text


def test_every_example_of_the_help_is_a_command_that_exists(generate):
    for _, command in every(commands, "evenedit"):
        _, _, examples = (command.help or "").partition("Example:\n")
        for line in filter(None, map(str.strip, examples.splitlines())):
            parse(commands, shlex.split(line, comments=True)[1:])


def parse(command: click.Command, arguments: list[str]) -> None:
    """Read arguments as the command line would, without running anything."""
    if isinstance(command, click.Group):
        _, member, rest = command.resolve_command(click.Context(command), arguments)
        assert member is not None
        parse(member, rest)
    else:
        command.make_context(command.name, arguments, resilient_parsing=True)


def test_every_public_name_is_in_the_reference(site):
    text = text_of(site / "reference/python/index.html")
    for name in evenedit.__all__:
        assert name.startswith("__") or name in text


def test_every_field_of_the_results_has_its_meaning(site, generate):
    text = text_of(site / "reference/results/index.html")
    results_file = generate("results_file")
    for part in dataclasses.fields(Results):
        assert part.name in text
        if record := results_file.record_of(results_file.hints(Results)[part.name]):
            for inner in (record, *(kind for _, kind in results_file.nested(record))):
                for field, _, meaning in results_file.meanings(inner):
                    assert meaning, f"{inner.__name__}.{field} has no docstring"


def test_every_column_that_is_read_or_written_is_in_the_page_of_tables():
    text = (ROOT / "docs/reference/tables.md").read_text("utf-8")
    factors = [factor.name for factor in FACTORS]
    quality = [field.name for field in dataclasses.fields(Quality)]
    pairs = [*EXAMPLE.partition("\n")[0].split(","), "refused"]
    for column in (*pairs, *score_columns(factors), *VERDICT_COLUMNS, *OPTIONAL, *AXES, *COLUMNS, *quality):
        assert f"`{column}`" in text
