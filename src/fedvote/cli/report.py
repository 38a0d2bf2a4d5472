"""`fedvote report`: write a web page about runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fedvote.cli.completion import run_folders


def report(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Run folders or sweep folders.", autocompletion=run_folders),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Output file; default: report.html in DIR, or compare.html here for several.")
    ] = None,
) -> None:
    """Write one web page about a run, or about several side by side."""
    from fedvote.report import write_report

    typer.echo(write_report(folders, out or (Path("compare.html") if folders[1:] else folders[0] / "report.html")))
