"""The help as a user reads it: commands in sections, whole sentences, every option explained."""

from collections import Counter
from collections.abc import Iterator

import click
import pytest

from evenedit.cli import commands


def groups(command: click.Command = commands, *names: str) -> Iterator[tuple[str, click.Group]]:
    """Every group of commands with its name."""
    if isinstance(command, click.Group):
        yield " ".join(names), command
        for name, member in command.commands.items():
            yield from groups(member, *names, name)


GROUPS = dict(groups())


def shown(group: click.Group) -> str:
    """The help of a group on a terminal of 80 columns."""
    return group.get_help(click.Context(group, terminal_width=80))


def test_every_command_stands_in_exactly_one_section_of_the_root_help():
    placed = Counter(command.name for section in commands.sections.values() for command in section)
    assert placed == dict.fromkeys(commands.commands, 1)
    assert [*commands.sections] == [
        "Start",
        "A study",
        "Hand over",
        "People",
        "Several editors",
        "Parts",
        "For developers",
    ]
    for title in commands.sections:
        assert f"\n{title}:\n" in shown(commands)


@pytest.mark.parametrize("name", GROUPS)
def test_each_command_is_one_whole_line_in_the_help_of_its_group(name):
    lines = shown(GROUPS[name]).splitlines()
    assert not [line for line in lines if line.endswith("...") and "COMMAND" not in line]
    for command in GROUPS[name].commands.values():
        sentence = command.get_short_help_str(limit=1000)
        assert [line.split()[0] for line in lines if line.endswith(f"  {sentence}")] == [command.name]


@pytest.mark.parametrize("name", GROUPS)
def test_every_option_says_what_it_does(name):
    for command in GROUPS[name].commands.values():
        for option in (p for p in command.params if isinstance(p, click.Option)):
            assert option.help, f"{name} {command.name} {option.opts[0]}"
