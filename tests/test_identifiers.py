"""Names are those of the field, and docstrings of functions start with a verb."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

PACKAGE = ROOT / "src" / "evenedit"
BANNED = frozenset(
    re.findall(
        r"\w+",
        """
        found told said heard beside alone sit_down sit_for asked given kept hire hired staffed call_staff seat knock
        apart together whole own theirs mine ours everything everybody everyone nothing anything something somebody
        nobody here there elsewhere meanwhile afterwards again thing things stay stays begun came gone made unmade shown
        worded laid lit looked noted late some
        """,
    )
)
"""Names that say nothing about what they hold; without leading and trailing underscores."""
STORED = {("StaffAccount", "made")}
"""Fields whose names are keys of stored files, by class; they go with the next version of these files."""
BANNED_MODULES = frozenset({"beside", "asked", "given", "holds"})
FIRST_WORDS = frozenset(
    re.findall(r"\w+", "What How Whether Every Each Where Which Why All One By For Everything Names Rows That This Of")
)
"""Words that no docstring of a function starts with: it starts with a verb."""
Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules() -> Iterator[Path]:
    """Yield the modules of the package."""
    yield from sorted(PACKAGE.rglob("*.py"))


def where(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def names(tree: ast.AST, owner: str = "") -> Iterator[tuple[str, str, ast.AST]]:
    """Yield every assigned name, argument, function and class, with the class that it belongs to."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (*Function.__args__, ast.ClassDef)):
            yield owner, node.name, node
        elif isinstance(node, ast.arg):
            yield owner, node.arg, node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield owner, node.id, node
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield owner, node.attr, node
        elif isinstance(node, ast.alias) and node.asname:
            yield owner, node.asname, node
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield owner, node.name, node
        yield from names(node, node.name if isinstance(node, ast.ClassDef) else owner)


def is_property(node: Function) -> bool:
    """Return whether a method reads like an attribute."""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    return any(each.split(".")[-1] in ("property", "cached_property", "setter") for each in decorators)


def test_no_name_is_banned() -> None:
    problems = [
        f"{where(path, node)}: {name}"
        for path in modules()
        for owner, name, node in names(ast.parse(path.read_text("utf-8")))
        if name.strip("_").lower() in BANNED and (owner, name) not in STORED
    ]
    assert not problems, "\n".join(problems)


def test_no_module_has_a_banned_name() -> None:
    problems = [where(path, ast.Module()) for path in modules() if path.stem.strip("_") in BANNED_MODULES]
    assert not problems, "\n".join(problems)


def test_docstrings_of_functions_start_with_a_verb() -> None:
    problems = []
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, Function) and not is_property(node):
                words = (ast.get_docstring(node) or "").split(maxsplit=1)
                if words and words[0].rstrip(",:;.") in FIRST_WORDS:
                    problems.append(f"{where(path, node)}: {node.name} starts with '{words[0]}'")
    assert not problems, "\n".join(problems)
