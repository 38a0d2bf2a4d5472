"""`fedvote cost` and `fedvote bench`: what a network costs, and how fast this machine is."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fedvote.bench import BENCHMARKS, benchmark, table
from fedvote.cli.completion import names_of, one_of
from fedvote.cli.options import AsJson


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

    sides = parse_shape(shape)
    rows = [cost.row(inputs) for cost in costs(make_model(model, sides, classes), sides, classes)]
    typer.echo(json.dumps(rows, indent=2) if as_json else table(rows))


def bench(
    name: Annotated[
        str,
        typer.Argument(help="What to measure: codec, tally, simulate or infer.", autocompletion=one_of(*BENCHMARKS)),
    ],
    file: Annotated[Path | None, typer.Option("--json", help="Also write the numbers here.")] = None,
    page_file: Annotated[Path | None, typer.Option("--page", help="Also draw them, as a web page.")] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(help="simulate, infer: only this network; repeatable.", autocompletion=names_of("models")),
    ] = None,
    clients: Annotated[list[int] | None, typer.Option(help="simulate: only so many; may be repeated.")] = None,
) -> None:
    """Measure speed and bytes on this machine."""
    from fedvote.runs.folder import environment
    from fedvote.system.atomic_file import try_writing, write
    from fedvote.system.device import find_device

    measure = benchmark(name, model or (), clients or ())
    for path in filter(None, (file, page_file)):  # what cannot be written shows before anything is measured
        try_writing(path)
    rows = measure()
    typer.echo(table(rows))
    if file is not None:
        about = environment(find_device("auto"))
        write(file, json.dumps({"environment": about, "rows": rows}, indent=2) + "\n")
    if page_file is not None:
        from fedvote.bench.page import page

        write(page_file, page(name, rows))
