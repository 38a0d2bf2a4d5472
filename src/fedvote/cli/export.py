"""`fedvote export`: a run's network for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import one_of, run_folders


def export(
    run: Annotated[
        Path,
        typer.Argument(metavar="RUN", help="A run folder, or its network.safetensors.", autocompletion=run_folders),
    ],
    to: Annotated[
        str, typer.Option(help="The format: onnx, or c for small devices.", autocompletion=one_of("onnx", "c"))
    ] = "onnx",
    out: Annotated[
        Path | None, typer.Option(help="The file, or a folder for it; else network.FORMAT beside the run's own.")
    ] = None,
    int8: Annotated[bool, typer.Option("--int8", help="Activations of 8 bits: faster. Needs the run's data.")] = False,
    test: Annotated[bool, typer.Option("--test", help="Also judge the file on the run's test data.")] = False,
) -> None:
    """Write the deployed network of a run for other programs, its votes packed into bits or trits."""
    from fedvote.export.export_run import export_run

    made, accuracy = export_run(run, to, out, int8, test)
    packed = f"{made.votes:,} votes packed" if made.votes else "no votes to pack: its weights are floats"
    tried = (
        "its answers could not be tried here" if made.agreement is None else f"answers checked: {made.agreement:.1%}"
    )
    typer.echo(f"{made.path}: {made.nbytes / 1000:,.1f} kB, {packed}; {tried}")
    if accuracy is not None:
        typer.echo(f"accuracy on the test data: {accuracy:.2%}")
