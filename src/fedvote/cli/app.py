"""The command `fedvote` and its subcommands."""

from __future__ import annotations

from typing import Annotated

import typer

from fedvote import __version__
from fedvote.cli.data import data_app
from fedvote.cli.deploy import deploy_app
from fedvote.cli.export import export
from fedvote.cli.help import WholeSentences
from fedvote.cli.measure import bench, cost
from fedvote.cli.mistyped import WithSettings
from fedvote.cli.names import keys, list_names
from fedvote.cli.report import report
from fedvote.cli.reproduce import reproduce
from fedvote.cli.run import run
from fedvote.cli.sweep import sweep

app = typer.Typer(cls=WholeSentences, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fedvote {__version__}")
        raise typer.Exit


@app.callback()
def fedvote(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Federated learning in which clients send votes instead of weights."""


app.command(cls=WithSettings)(run)
app.command(cls=WithSettings)(sweep)
app.command(cls=WithSettings)(reproduce)
app.command(name="list")(list_names)
app.command()(keys)
app.command()(report)
app.command()(export)
app.command()(cost)
app.command()(bench)
app.add_typer(data_app, name="data")
app.add_typer(deploy_app, name="deploy")
