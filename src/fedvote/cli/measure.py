"""`fedvote cost` and `fedvote bench`: what a network costs, and how fast this machine is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import names_of
from fedvote.cli.names import list_names
from fedvote.cli.options import AsJson, Settings


def cost(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A network by its name, or your own as FILE.py:NAME.",
            autocompletion=names_of("models"),
        ),
    ],
    shape: Annotated[str, typer.Option(help="Of one input.")] = "3x32x32",
    classes: Annotated[int, typer.Option(min=1, help="How many outputs.")] = 10,
    inputs: Annotated[int, typer.Option(min=1, help="Of how many inputs; the paper counts 100.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Count additions and multiplications with float, binary and ternary weights: the paper's cost model."""
    from fedvote.models import make_model
    from fedvote.network.cost import costs, parse_shape
    from fedvote.studies.rows import table

    sides = parse_shape(shape)
    rows = [cost.row(inputs) for cost in costs(make_model(model, sides, classes), sides, classes)]
    typer.echo(json.dumps(rows, indent=2) if as_json else table(rows))


def bench(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="None given: say which there are.", autocompletion=names_of("benchmarks")
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Also write the numbers here.")] = None,
    page: Annotated[Path | None, typer.Option(help="Also draw them, as a web page.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="ROW", help="Only this row; repeatable.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Only this network; repeatable.", autocompletion=names_of("models"))
    ] = None,
    clients: Annotated[list[int] | None, typer.Option(help="Only so many clients; repeatable.")] = None,
    preset: Annotated[str | None, typer.Option(help="What to run, where the benchmark runs one.")] = None,
    set: Settings = None,
    rounds: Annotated[int | None, typer.Option(help="Of every run; else as many as the benchmark has.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
) -> None:
    """Measure speed and bytes on this machine. A benchmark refuses options that it has no use for."""
    from fedvote.studies.bench import bench as measure

    if name is None:
        list_names("benchmarks")
        return
    asked = {"model": model, "clients": clients, "only": only, "preset": preset, "set": set, "rounds": rounds}
    typer.echo(measure(name, file, page, **asked, device=device))
