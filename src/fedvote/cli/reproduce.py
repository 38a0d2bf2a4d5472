"""`fedvote reproduce`: the paper's figures and tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import names_of
from fedvote.cli.names import list_names
from fedvote.cli.options import Device, Settings


def reproduce(
    experiment: Annotated[
        str | None,
        typer.Argument(
            metavar="[EXPERIMENT | all]",
            help="None given: say which there are.",
            autocompletion=names_of("experiments", "all"),
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="How often each run is repeated, with seeds 0, 1, ...")] = 3,
    rounds: Annotated[int | None, typer.Option(help="Of every run; else as many as the experiment has.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="ROW", help="Only this line, row or column; repeatable.")
    ] = None,
    set: Settings = None,
    device: Device = "auto",
    out: Annotated[Path, typer.Option(help="Where run folders and pages go.")] = Path("runs/paper"),
) -> None:
    """Run the paper's figures and tables, or another experiment; started again, it goes on where it was."""
    from fedvote.studies.experiments import EXPERIMENTS, Asked
    from fedvote.studies.experiments.reproduce import report_on

    if experiment is None:
        list_names("experiments")
        return
    asked = Asked(seeds, rounds, tuple(set or ()), tuple(only or ()), device)
    try:
        for name in EXPERIMENTS if experiment == "all" else [experiment]:
            typer.echo(report_on(name, asked, out))
    except KeyboardInterrupt:
        typer.echo("stopped; the same command goes on where it was", err=True)
        raise typer.Exit(130) from None
