"""`fedvote data`: get, check and look at datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import names_of
from fedvote.cli.help import WholeSentences
from fedvote.cli.mistyped import WithSettings
from fedvote.cli.options import Settings, Source

data_app = typer.Typer(
    cls=WholeSentences, help="Get, check and look at datasets.", no_args_is_help=True, rich_markup_mode=None
)

DataName = Annotated[
    str, typer.Argument(help="A dataset: one of `fedvote list datasets`.", autocompletion=names_of("datasets"))
]
Folder = Annotated[Path | None, typer.Option("--dir", help="Folder of datasets; default: $FEDVOTE_DATA or the cache.")]


@data_app.command(name="get")
def data_get(name: DataName, folder: Folder = None) -> None:
    """Download a dataset from its publisher and check it; an interrupted download resumes."""
    from fedvote.data import check, data_folder, get
    from fedvote.runs.progress import downloading

    if not check(name, folder):
        typer.echo(f"{name} needs no files")
        return
    with downloading(name) as progress:
        get(name, folder, progress)
    typer.echo(f"{name} is complete in {folder or data_folder()}")


@data_app.command(name="check")
def data_check(name: DataName, folder: Folder = None) -> None:
    """Check a dataset's files; exit code 2 if one is missing or damaged."""
    from fedvote.data import check

    statuses = check(name, folder)
    for status in statuses:
        typer.echo(status)
    if not all(status.ok for status in statuses):
        raise typer.Exit(2)
    typer.echo(f"{name} is complete" if statuses else f"{name} needs no files")


@data_app.command(name="show", cls=WithSettings)
def data_show(source: Source = "quickstart", set: Settings = None) -> None:
    """Draw which client of a configuration has which classes."""
    from rich.console import Console

    from fedvote.runs.config import read
    from fedvote.runs.experiment import division

    Console().print(division(read(source, set or [])))
