"""Every command of the command line."""

from __future__ import annotations

import typer.main
from click import Command as ClickCommand
from click import Group

from fedvote.cli import app


def commands(command: ClickCommand, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], ClickCommand]:
    """Every command and group, by the words that lead to it."""
    found = {path: command}
    for name, part in command.commands.items() if isinstance(command, Group) else ():
        found |= commands(part, (*path, name))
    return found


EVERY = commands(typer.main.get_command(app))
