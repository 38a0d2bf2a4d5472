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
        str, typer.Option(help="The format: onnx, or c for small devices.", autocompletion=one_of("onnx", "c"))
    ] = "onnx",
    out: Annotated[
        Path | None,
        typer.Option(help="Output file, or a folder to put it in; default: network.FORMAT in the run folder."),
    ] = None,
    int8: Annotated[bool, typer.Option("--int8", help="8-bit activations: faster. Needs the run's data.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Also measure it on the run's test data.")] = False,
    data: Annotated[
        str, typer.Option(help="Data to use instead of the run's: a dataset, FILE.py:NAME, or a folder with test.npz.")
    ] = "",
    trust: Trust = False,
) -> None:
    """Write a run's deployed network as ONNX or C, its votes packed into bits or trits."""
    from fedvote.export.export_run import export_run

    made, quality = export_run(run, to, out, int8, test, trust=trust, data=data)
    packed = f"{made.votes:,} votes packed" if made.votes else "no votes to pack: its weights are floats"
    checked = "answers not checked here" if made.agreement is None else f"answers checked: {made.agreement:.1%}"
    typer.echo(f"{made.path}: {made.nbytes / 1000:,.1f} kB, {packed}; {checked}")
    for name, value in quality.items():
        typer.echo(f"{name} on the test data: {f'{value:.2%}' if name == 'accuracy' else f'{value:.4g}'}")
