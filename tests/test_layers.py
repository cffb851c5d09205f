"""The picture of the layers is the contract that import-linter holds."""

import re
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

import evenedit
from evenedit.results.results import Results as Record

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "evenedit"


def contract() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    return [*settings["contracts"][0]["layers"]]


def drawn() -> list[str]:
    picture = (ROOT / "docs" / "architecture.md").read_text().split("```text layers\n")[1].split("```")[0]
    return [re.split(r"\s{2,}", line.strip("│ "))[0] for line in picture.splitlines() if line.startswith("│")]


def test_the_picture_shows_the_layers_that_are_held():
    assert drawn() == contract()


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    """Imports between modules; those inside functions and for the type checker count."""
    return grimp.build_graph("evenedit", exclude_type_checking_imports=False, cache_dir=None)


def test_no_modules_import_each_other_in_a_cycle(graph):
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()  # raises CycleError, which names the cycle


def test_modules_of_stats_do_not_import_their_package(graph):
    importers = graph.find_modules_that_directly_import("evenedit.stats")
    assert importers and not {module for module in importers if module.startswith("evenedit.stats.")}


def test_the_top_of_the_package_holds_packages_only():
    names = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert names - packages == {"__init__.py", "__main__.py", "py.typed"}
    assert packages == {name for layer in contract() for name in layer.split(" | ")}
    assert len(packages) <= 29


def test_no_class_name_exists_twice_except_the_public_results():
    seen: dict[str, Path] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE):
            if path == PACKAGE / "api" / "results.py" and name == "Results":
                assert issubclass(evenedit.Results, Record)
                continue
            assert name not in seen, f"{name} is a class of {seen[name]} and of {path}"
            seen[name] = path


def test_every_walk_of_the_architecture_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text().split("## The path of one edit")[1].split("## Records")[0]
    for name in re.findall(r"`([a-z_/0-9]+(?:\.py|/))`", text):
        paths = [PACKAGE / name, *PACKAGE.rglob(name.rstrip("/"))]
        assert any(path.exists() for path in paths), f"docs/architecture.md names {name}"


def test_tests_mirror_the_package():
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and list(path.rglob("test_*.py"))}
    assert folders <= {path.name for path in PACKAGE.iterdir() if path.is_dir()} | {"e2e"}
