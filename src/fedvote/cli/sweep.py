"""`fedvote sweep`: run one configuration with many values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import keys, presets
from fedvote.cli.options import Device, Settings


def sweep(
    source: Annotated[str, typer.Argument(metavar="PRESET | FILE.toml", help="What to run.", autocompletion=presets)],
    over: Annotated[
        list[str],
        typer.Option(metavar="A.B=V1,V2,...", help="Values of a key, or paper-grid; repeatable.", autocompletion=keys),
    ],
    set: Settings = None,
    device: Device = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder for run folders; default: runs/sweep-NAME.")] = None,
) -> None:
    """Run one configuration with many values and find the best; the same command resumes it."""
    from fedvote.report import write_report
    from fedvote.runs.sweep import TABLE
    from fedvote.runs.sweep import sweep as run_sweep
    from fedvote.runs.sweep_results import at_the_edge, best, best_of_each, means, save

    folder = out or Path("runs") / f"sweep-{Path(source).stem}"
    done = []
    try:
        for point in run_sweep(source, over, set or [], folder, device):
            done.append(point)
            typer.echo(str(point))
    except KeyboardInterrupt:
        typer.echo(f"stopped after {len(done)} runs; the same command resumes", err=True)
        raise typer.Exit(130) from None
    save(done, folder / TABLE, device)
    if len(averages := means(done)) < len(done):
        for mean in averages:
            typer.echo(str(mean))
    if 1 < len(each := best_of_each(done)) < len(averages):
        typer.echo("\nthe best of each method:")
        for mean in each:
            typer.echo(str(mean))
    page = write_report([point.folder for point in done], folder / "report.html")
    chosen = f"best: {' '.join(best(done).settings)}; " if len(averages) > 1 else ""
    typer.echo(f"{chosen}table: {folder / TABLE}, report: {page}")
    if edge := at_the_edge(done):
        typer.echo(edge)
    if chosen and not all(point.validated for point in done):
        typer.echo("chosen by the test examples; --set data.validation=0.1 chooses by held-out training examples")
