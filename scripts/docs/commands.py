"""Every command with its options and examples, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator

import click

from evenedit.cli import commands
from markdown_tables import shown, table


def reference() -> str:
    """A section per section of the root help, a part per command."""
    parts = []
    for title, section in commands.sections.items():
        parts.append(f"## {title}")
        parts += [text for command in section for text in described(command, "evenedit")]
    return "\n\n".join(parts)


def described(command: click.Command, above: str) -> Iterator[str]:
    """What a command says of itself, then the commands within it."""
    name = f"{above} {command.name}"
    context = click.Context(command, info_name=name)
    said, _, examples = (command.help or "").partition("\b\nExample:\n")
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"### {name}", shown(said.strip()), f"```text\n{usage}\n```"]
    options = [p.get_help_record(context) for p in command.params if isinstance(p, click.Option)]
    if rows := [[f"`{names}`", help_] for names, help_ in filter(None, options)]:
        parts.append(table(["option", "meaning"], rows))
    if isinstance(command, click.Group):
        inner = [(f"`{name} {c.name}`", c.get_short_help_str(limit=1000)) for c in command.commands.values()]
        parts.append(table(["command", "what"], inner))
    elif examples:
        parts.append("```sh\n" + "\n".join(line.strip() for line in examples.strip().splitlines()) + "\n```")
    yield "\n\n".join(parts)
    for member in getattr(command, "commands", {}).values():
        yield from described(member, name)
