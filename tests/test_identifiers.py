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


def names(tree: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield every assigned name, argument, function and class."""
    for node in ast.walk(tree):
        if isinstance(node, (*Function.__args__, ast.ClassDef)):
            yield node.name, node
        elif isinstance(node, ast.arg):
            yield node.arg, node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr, node
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname, node
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name, node


def is_property(node: Function) -> bool:
    """Return whether a method reads like an attribute."""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    return any(each.split(".")[-1] in ("property", "cached_property", "setter") for each in decorators)


def test_no_name_is_banned() -> None:
    problems = [
        f"{where(path, node)}: {name}"
        for path in modules()
        for name, node in names(ast.parse(path.read_text("utf-8")))
        if name.strip("_").lower() in BANNED
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
