"""Commands with --set: where a setting is typed as an option, or without its =, they say how it is typed."""

from __future__ import annotations

from itertools import pairwise

import click
import typer.core

from fedvote.cli.source_names import configuration_keys
from fedvote.settings import name_here

MOST = 3  # settings of one name that a sentence offers


class WithSettings(typer.core.TyperCommand):
    """A command that has --set A.B=C."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        words = list(args)  # click takes them out of the list
        for at, (option, setting) in enumerate(pairwise(words)):
            if option == "--set" and "=" not in setting:
                ctx.fail(f"--set {setting!r} is not of the form a.b=c{_meant([setting], _value(words, at + 2))}")
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = error.option_name
            at = next(at for at, word in enumerate(words) if word.partition("=")[0] == option)
            value = words[at].partition("=")[2] or _value(words, at + 1)
            near = [name for name in error.possibilities or () if name != "--help"]
            more = _meant(_keys(option), value) or (f"; did you mean {' or '.join(near)}?" if near else "")
            ctx.fail(f"No such option {option!r}{more}")


def _keys(option: str) -> list[str]:
    """The keys of a configuration whose last name is the option's; the shortest first."""
    name = name_here(option.strip("-").replace("-", "_"))
    return sorted((key for key in configuration_keys() if key.rpartition(".")[2] == name), key=len)


def _value(words: list[str], at: int) -> str:
    """The value at this place, if there is one."""
    return words[at] if at < len(words) and not words[at].startswith("--") else "VALUE"


def _meant(keys: list[str], value: str) -> str:
    return f"; did you mean {' or '.join(f'--set {key}={value}' for key in keys[:MOST])}?" if keys else ""
