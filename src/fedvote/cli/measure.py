"""`fedvote cost` and `fedvote bench`: the cost of a network, and the speed of this machine."""

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
            help="A network's name, or your own as FILE.py:NAME.",
            autocompletion=names_of("models"),
        ),
    ],
    shape: Annotated[str, typer.Option(help="Shape of one input.")] = "3x32x32",
    classes: Annotated[int, typer.Option(min=1, help="Number of classes.")] = 10,
    inputs: Annotated[int, typer.Option(min=1, help="Number of inputs; the paper counts 100.")] = 1,
    as_json: AsJson = False,
) -> None:
    """Count additions and multiplications with float, binary and ternary weights: the paper's cost model."""
    from fedvote.errors import ModelError
    from fedvote.models import make_model
    from fedvote.network.cost import costs, parse_shape
    from fedvote.studies.rows import table

    sides = parse_shape(shape)
    module = make_model(model, sides, classes)
    try:
        rows = [cost.row(inputs) for cost in costs(module, sides, classes)]
    except ModelError as error:
        raise ModelError(f"{error}; --shape and --classes say what the network takes and gives") from error
    typer.echo(json.dumps(rows, indent=2) if as_json else table(rows))


def bench(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]", help="A benchmark; without a name, list them.", autocompletion=names_of("benchmarks")
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option("--json", help="Also write the numbers to this file.")] = None,
    page: Annotated[Path | None, typer.Option(help="Also write them as a web page with charts.")] = None,
    only: Annotated[list[str] | None, typer.Option(metavar="ROW", help="Only this row; repeatable.")] = None,
    model: Annotated[
        list[str] | None, typer.Option(help="Only this network; repeatable.", autocompletion=names_of("models"))
    ] = None,
    clients: Annotated[list[int] | None, typer.Option(help="Only this number of clients; repeatable.")] = None,
    preset: Annotated[str | None, typer.Option(help="The preset, for benchmarks that run one.")] = None,
    set: Settings = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of every run; default: the benchmark's.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
) -> None:
    """Measure speed and bytes on this machine. A benchmark refuses options that it does not use."""
    from fedvote.studies.bench import bench as measure

    if name is None:
        list_names("benchmarks")
        return
    options = {"model": model, "clients": clients, "only": only, "preset": preset, "set": set, "rounds": rounds}
    typer.echo(measure(name, file, page, **options, device=device))
