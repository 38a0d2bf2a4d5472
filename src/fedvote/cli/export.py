"""`fedvote export`: write a run's network for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import one_of, run_folders
from fedvote.cli.options import Trust


def export(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run folder, or its network.safetensors.", autocompletion=run_folders),
    ],
    to: Annotated[
        str,
        typer.Option(
            help="The format: onnx, c for small devices, or web: a page to try it.",
            autocompletion=one_of("onnx", "c", "web"),
        ),
    ] = "onnx",
    out: Annotated[
        Path | None,
        typer.Option(help="Output file, or a folder; default: network.FORMAT, or the folder web, in the run folder."),
    ] = None,
    int8: Annotated[bool, typer.Option("--int8", help="8-bit activations: faster. Needs the run's data.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Also measure it on the run's test data.")] = False,
    data: Annotated[
        str, typer.Option(help="Data to use instead of the run's: a dataset, FILE.py:NAME, or a folder with test.npz.")
    ] = "",
    runtime: Annotated[
        Path | None, typer.Option(help="For web: the package onnxruntime-web as a file; default: npm gets it once.")
    ] = None,
    trust: Trust = False,
) -> None:
    """Write a run's deployed network as ONNX, C or a web page, its votes packed into bits or trits."""
    from fedvote.export.export_run import export_run

    made, quality = export_run(run, to, out, int8, test, trust=trust, data=data, runtime=runtime)
    packed = f"{made.votes:,} votes packed" if made.votes else "no votes to pack: its weights are floats"
    checked = "answers not checked here"
    if made.agreement is not None:
        checked = f"{made.agreement:.1%} of its answers agree with the network's"
    whose = {"c": "{} of constants", "web": "a network of {} as ONNX"}.get(to, "{}")
    size = whose.format(f"{made.nbytes / 1000:,.1f} kB")
    typer.echo(f"{made.path}: {size}, {packed}; {checked}")
    for name, value in quality.items():
        typer.echo(f"{name} on the test data: {f'{value:.2%}' if name == 'accuracy' else f'{value:.4g}'}")
    if to == "web":
        typer.echo(f"open it in a browser: {made.path.resolve().as_uri()}")
