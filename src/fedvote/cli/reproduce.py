"""`fedvote reproduce`: measure the paper's figures and tables."""

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
            metavar="[EXPERIMENT | FILE.py:NAME | all]",
            help="An experiment, or your own; without a name, list them.",
            autocompletion=names_of("experiments", "all"),
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Runs of every configuration, with seeds 0, 1, ...")] = 3,
    rounds: Annotated[int | None, typer.Option(help="Rounds of every run; default: the experiment's.")] = None,
    only: Annotated[
        list[str] | None, typer.Option(metavar="ROW", help="Only this row, line or column; repeatable.")
    ] = None,
    list_rows: Annotated[
        bool, typer.Option("--list", help="List the rows and columns that --only takes, and run nothing.")
    ] = False,
    set: Settings = None,
    device: Device = "auto",
    jobs: Annotated[int, typer.Option(help="Runs at a time, each in its own process with one thread.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for run folders and pages.")] = Path("runs/paper"),
    earlier: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Results of another machine: the runs in it are not repeated; repeatable."),
    ] = None,
) -> None:
    """Measure the paper's figures and tables, or another experiment; the same command resumes it."""
    from fedvote.studies.experiments import EXPERIMENTS, Asked
    from fedvote.studies.experiments.contract import ignored_by
    from fedvote.studies.experiments.earlier_runs import unpack
    from fedvote.studies.experiments.reproduce import RUNS, named, report_on

    if experiment is None:
        list_names("experiments")
        return
    every = list(EXPERIMENTS) if experiment == "all" else [experiment]
    if list_rows:
        for name in every:
            typer.echo(named(name).about)
            for kind, names in named(name).names().items():
                typer.echo("\n  ".join([f"{kind}:", *names]) if names else f"{kind}: none")
        return
    asked = Asked(seeds, rounds, tuple(set or ()), tuple(only or ()), device, jobs)
    for file in earlier or ():
        unpack(file, out / RUNS)
    try:
        for name in every:
            fitting = asked.without(ignored_by(named(name))) if experiment == "all" else asked
            typer.echo(report_on(name, fitting, out))
    except KeyboardInterrupt:
        typer.echo("stopped; the same command resumes", err=True)
        raise typer.Exit(130) from None
