"""Help as plain text, in whole sentences."""

from __future__ import annotations

import sys

import click
import typer._completion_classes
import typer.core

from fedvote.errors import did_you_mean

# Our help is plain text. If rich is installed, typer would escape its brackets, and break it into lines for shells.
typer.core.HAS_RICH = False
typer._completion_classes._sanitize_help_text = lambda text: text


class WholeSentences(typer.core.TyperGroup):
    """A command group that wraps the sentence about each command; click would cut it at the terminal's width.

    It suggests a command once: click and typer would both do so, each in a sentence of its own.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}; known: {', '.join(self.commands)}{did_you_mean(name, self.commands)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(sys.maxsize)) for name, each in self.commands.items()])
