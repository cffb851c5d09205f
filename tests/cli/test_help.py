"""The help as a user reads it: commands in sections, whole sentences, every option explained."""

from collections import Counter
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from evenedit.cli import commands
from evenedit.cli.base import REMOVED


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
        "Everyday",
        "Hand over",
        "Results",
        "Survey",
        "Judges and portraits",
        "Maintenance",
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


def leaves() -> dict[str, click.Command]:
    """Every command that is not a group, with its full name."""
    return {
        f"{name} {command.name}".strip(): command
        for name, group in GROUPS.items()
        for command in group.commands.values()
        if not isinstance(command, click.Group)
    }


def test_there_are_41_commands_and_136_options():
    options = [p for command in leaves().values() for p in command.params if isinstance(p, click.Option)]
    assert (len(leaves()), len(options)) == (41, 136)


@pytest.mark.parametrize("name", REMOVED)
def test_a_removed_command_exits_2_and_names_the_new_one(name):
    result = CliRunner().invoke(commands, [*name.split(), "x", "--y"])
    assert result.exit_code == 2 and f"'{name}' is now: {REMOVED[name]}" in result.output
    assert name not in leaves() and name not in GROUPS


@pytest.mark.parametrize("text", [text for text in REMOVED.values() if text.startswith("evenedit ")])
def test_the_replacement_of_a_removed_command_exists(text):
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").split("evenedit ")
    for part in filter(None, map(str.strip, words[1:])):
        names = part.split()
        command = commands
        while isinstance(command, click.Group) and names and names[0] in command.commands:
            command = command.commands[names.pop(0)]
        assert command is not commands, part
        flags = {flag for option in command.params for flag in option.opts}
        assert {word for word in names if word.startswith("--")} <= flags, part
