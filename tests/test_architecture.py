"""The map in docs/architecture.md is the map of the imports."""

import ast
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "evenedit"
DOCUMENT = Path(__file__).parents[1] / "docs" / "architecture.md"
OPEN, CLOSE = "```text who-knows-whom\n", "\n```"


def rooms() -> dict[str, list[Path]]:
    """Top-level modules and packages, each with its files."""
    found: dict[str, list[Path]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if not part.startswith("__"):
            found.setdefault(part, []).append(path)
    return found


def imported(path: Path, *, types: bool = True) -> set[str]:
    """Every module a file names; without `types`, those that are named for the type checker alone are left out."""
    names: set[str] = set()
    tree = ast.parse(path.read_text())
    if not types:
        tree.body = [n for n in tree.body if not (isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def knows(*, types: bool = True) -> dict[str, set[str]]:
    """Which room imports which; without `types`, at run time."""
    names = rooms()
    return {
        room: {
            other
            for path in paths
            for name in imported(path, types=types)
            for other in names
            if other != room and (name == f"evenedit.{other}" or name.startswith(f"evenedit.{other}."))
        }
        for room, paths in names.items()
    }


def drawn() -> str:
    """A room in brackets is known by its types alone."""
    run = knows(types=False)
    return "\n".join(
        f"{room:12} -> {' '.join(o if o in run[room] else f'({o})' for o in sorted(others)) or '-'}".rstrip()
        for room, others in knows().items()
    )


def test_the_document_shows_the_imports_as_they_are():
    text = DOCUMENT.read_text()
    shown = text.split(OPEN)[1].split(CLOSE)[0]
    assert shown == drawn(), f"docs/architecture.md is out of date; put this there:\n{drawn()}"


def test_every_room_is_described():
    text = DOCUMENT.read_text()
    for room, paths in rooms().items():
        name = f"{room}/" if len(paths) > 1 else f"{room}.py"
        assert f"`{name}`" in text or f"`{room}/`" in text, f"docs/architecture.md does not describe {name}"


def test_records_know_nobody_and_nobody_knows_the_command_line():
    graph = knows()
    assert graph["records"] == set()
    assert all("cli" not in others for others in graph.values())


def test_statistics_and_report_never_see_an_editor_a_judge_or_the_store():
    graph = knows()
    for room in ("stats", "report", "ensemble", "ratings", "results"):
        assert not graph[room] & {"editors", "judges", "store", "pipeline", "executors", "sources"}


def test_nothing_is_imported_in_a_circle():
    graph, done = knows(types=False), set()
    while len(done) < len(graph):
        ready = {room for room, others in graph.items() if room not in done and others <= done}
        assert ready, f"these rooms know each other in a circle: {sorted(set(graph) - done)}"
        done |= ready


def test_heavy_libraries_stay_in_their_rooms():
    allowed = {
        "torch": {"editors"},
        "diffusers": {"editors"},
        "sqlalchemy": {"schema", "store", "survey", "reviews"},
        "fastapi": {"web"},
        "matplotlib": {"report"},
        "pydantic": {"study", "web"},
        "click": {"cli"},
    }
    for room, paths in rooms().items():
        for path in paths:
            for name in imported(path):
                top = name.split(".")[0]
                assert room in allowed.get(top, {room}), f"{path.name} imports {top}"
