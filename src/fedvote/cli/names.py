"""`fedvote list` and `fedvote keys`: the names and keys that a configuration can have."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from fedvote.cli.completion import one_of
from fedvote.cli.options import AsJson
from fedvote.cli.source_names import configuration_keys
from fedvote.runs.catalogue import KINDS, catalogue


def list_names(
    kind: Annotated[
        str | None,
        typer.Argument(help=f"List only this kind: {', '.join(KINDS)}.", autocompletion=one_of(*KINDS)),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods, models, datasets and other parts that a configuration can name."""
    names = catalogue(kind)
    if as_json:
        typer.echo(json.dumps(names, indent=2))
        return
    for title, entries in names.items():
        typer.echo(f"{title}:")
        for name, about in entries.items():
            typer.echo(f"  {name:18}  {about}")


def keys(
    start: Annotated[
        str,
        typer.Argument(
            help="Show only keys that begin with this: method, federation.cohort, method=FILE.py:NAME, ...",
            autocompletion=configuration_keys,
        ),
    ] = "",
) -> None:
    """Show every key of a configuration, with its default and meaning."""
    from fedvote.runs.keys import settings

    of = None
    for setting in settings(start):
        if setting.of != of and setting.of:
            typer.echo(f"\n{setting.of}")
        of = setting.of
        typer.echo(f"  {setting.key} = {setting.default}  # {setting.meaning or setting.takes}")
