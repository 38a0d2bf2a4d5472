"""The directive `command-help`: every command with its arguments and options, from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import typer

from fedvote.cli import app as fedvote_app
from sphinx_extensions.markdown import directive, escaped


def commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """A command and all below it, by their full names."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for word, below in command.commands.items():
        yield from commands(below, f"{name} {word}")


def section(name: str, command: click.Command) -> str:
    context = click.Context(command, info_name=name)
    usage = " ".join(context.command.collect_usage_pieces(context))
    rows = [row(parameter, context) for parameter in command.params if not getattr(parameter, "hidden", False)]
    table = ["| | |", "|---|---|", *rows] if rows else []
    return "\n\n".join([f"## {name}", paragraphs(command.help), f"```\n{name} {usage}\n```", "\n".join(table)])


def paragraphs(text: str | None) -> str:
    """Help as the terminal shows it: \\b keeps the lines of a paragraph."""
    blocks = (text or "").replace("<", "&lt;").split("\n\n")
    return "\n\n".join(f"```text\n{block[2:]}\n```" if block.startswith("\b\n") else block for block in blocks)


def row(parameter: click.Parameter, context: click.Context) -> str:
    if isinstance(parameter, click.Argument):
        names, meaning = parameter.make_metavar(context), getattr(parameter, "help", None) or ""
    else:
        names, meaning = parameter.get_help_record(context) or ("", "")
    return f"| `{escaped(names)}` | {escaped(meaning)} |"


def help_page() -> str:
    return "\n\n".join(section(*each) for each in commands(typer.main.get_command(fedvote_app), "fedvote"))


def setup(app: Any) -> dict[str, bool]:
    app.add_directive("command-help", directive(help_page))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
