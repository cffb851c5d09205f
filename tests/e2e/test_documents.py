"""The documentation does what it says: commands run, Python compiles, TOML is a study's, links lead on."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from evenedit.config.sections import Sections
from tests.support.document_fixtures import Fixtures, read
from tests.support.documents import PAGES, REASONS, ROOT, Block, Shell, blocks, fixtures_of

BLOCKS = [block for page in PAGES for block in blocks(page)]
UNRUN = {block.place: block.needs for block in BLOCKS if block.is_shell and block.needs}
TO_RUN = [page for page in PAGES if any(b.page == page and (b.is_shell or "run" in b.marks) for b in BLOCKS)]


def named(thing: Path | Block) -> str:
    return thing.place if isinstance(thing, Block) else str(thing.relative_to(ROOT))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    opened = Shell(tmp_path_factory.mktemp("shell"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def fixtures(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Fixtures:
    return Fixtures(shell, tmp_path_factory.mktemp("fixtures"))


@pytest.mark.parametrize("page", TO_RUN, ids=named)
def test_the_blocks_of_a_page_run_in_their_order(page, shell, fixtures, tmp_path, monkeypatch):
    for name in fixtures_of(page):
        fixtures.put(name, tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks(page):
        if block.is_shell and not block.needs:
            codes = [int(code) for code in block.marks.get("exits", "0").split()]
            shell.run(block.text, tmp_path, typed=block.marks.get("types", ""), codes=codes)
        elif block.language == "python" and "run" in block.marks:
            exec(compile(block.text, block.place, "exec"), names)


def test_the_page_of_tables_names_every_column_of_an_export(fixtures):
    text = (ROOT / "docs/reference/tables.md").read_text("utf-8")
    for path in (fixtures.made("scores") / "exported").glob("*.csv"):
        for column in read(path)[0]:
            known = re.sub(r"^(score|settled|confidence)\..*", r"\1.<question>", column)
            assert f"`{known}`" in text, f"{path.name}: {column}"


def test_blocks_that_are_not_run_say_why(record_property):
    for place, reason in UNRUN.items():
        assert reason.split()[0] in REASONS, f"{place} needs '{reason}'; known: {', '.join(REASONS)}"
        record_property(place, reason)
    print("\n".join(f"{place}: {REASONS[reason.split()[0]]}" for place, reason in UNRUN.items()))


def test_a_block_that_runs_elsewhere_names_its_test():
    for place, reason in UNRUN.items():
        if reason.startswith("elsewhere"):
            assert (ROOT / reason.split()[1]).is_file(), place


def test_commands_stand_in_blocks_that_are_run():
    for page in PAGES:
        text = re.sub(r"```(sh|bash|console).*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        found = re.findall(r"^(?:    |\$ )?(?:evenedit|make) .*$", text, re.MULTILINE)
        commands = [line for line in found if line.startswith(("    ", "$ "))]
        assert not commands, f"{page.name}: mark as sh: {commands}"
        assert not [b.place for b in blocks(page) if not b.language], f"{page.name}: a block without a language"


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "python"], ids=named)
def test_python_compiles(block):
    compile(block.text, block.place, "exec")


@pytest.mark.parametrize("block", [b for b in BLOCKS if b.language == "toml"], ids=named)
def test_toml_can_be_read_and_names_keys_that_exist(block):
    table = tomllib.loads(block.text)
    if "id" in table or "project" in table:  # a prompt set, a package
        return
    for name, section in table.items():
        assert not unknown_keys(Sections.model_fields[name].annotation, section), block.place


def unknown_keys(annotation: Any, table: Any) -> set[str]:
    """Keys of a table that no model of this type has."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        inner = (unknown_keys(fields[key].annotation, value) for key, value in table.items() if key in fields)
        return (table.keys() - fields.keys()).union(*inner)
    shape, inside = get_origin(annotation), get_args(annotation)
    if shape is list:
        return set().union(*(unknown_keys(inside[0], each) for each in table))
    if shape is dict or not isinstance(table, dict):
        return set()
    return set().union(*(unknown_keys(each, table) for each in inside))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_to_files_that_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#\s]+)", text):
        if not re.match(r"[a-z]+:", target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
