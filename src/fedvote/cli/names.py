"""`fedvote list` and `fedvote keys`: the names and keys that a configuration can have."""

from __future__ import annotations

import json
from itertools import groupby
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
    width = max(len(name) for entries in names.values() for name in entries)
    for title, entries in names.items():
        typer.echo(f"{title}:")
        for name, about in entries.items():
            typer.echo(f"  {name:{width}}  {about}")


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

    first: dict[tuple[str, ...], str] = {}  # the path under which a part's keys came first
    told: set[str] = set()
    for of, group in groupby(settings(start), lambda setting: setting.of):
        path, _, part = of.partition(" ")
        lines = [f"{s.key} = {s.default}  # {s.meaning or s.takes}" for s in group]
        before = first.setdefault((part, *(line.removeprefix(path) for line in lines)), path) if part else path
        if before == path:
            typer.echo("\n".join([*([f"\n{of}"] if of else []), *(f"  {line}" for line in lines)]))
        elif path not in told:
            told.add(path)
            typer.echo(f"\n{path}: the keys of each part as for {before}, above")
