"""The picture of the layers is the contract that import-linter holds."""

import re
import tomllib
from pathlib import Path

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


def test_the_top_of_the_package_holds_packages_only():
    names = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    packages = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert names - packages == {"__init__.py", "__main__.py", "py.typed"}
    assert packages == {name for layer in contract() for name in layer.split(" | ")}
    assert len(packages) <= 22


def test_no_class_name_exists_twice():
    seen: dict[str, Path] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for name in re.findall(r"^class (\w+)", path.read_text(), re.MULTILINE):
            assert name not in seen, f"{name} is a class of {seen[name]} and of {path}"
            seen[name] = path


def test_every_walk_of_the_architecture_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text().split("## One walk")[1].split("## From a rating")[0]
    for name in re.findall(r"`([a-z_/0-9]+(?:\.py|/))`", text):
        paths = [PACKAGE / name, *PACKAGE.rglob(name.rstrip("/"))]
        assert any(path.exists() for path in paths), f"docs/architecture.md names {name}"


def test_tests_mirror_the_package():
    folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and list(path.rglob("test_*.py"))}
    assert folders <= {path.name for path in PACKAGE.iterdir() if path.is_dir()}
