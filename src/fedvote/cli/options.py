"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from fedvote.cli.completion import keys, one_of, presets

Source = Annotated[
    str, typer.Argument(metavar="[PRESET | FILE.toml]", help="A preset or a TOML file.", autocompletion=presets)
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="A.B=C", help="Set one key of the configuration; repeatable.", autocompletion=keys),
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.", autocompletion=one_of("auto", "cpu", "cuda"))]
Trust = Annotated[bool, typer.Option("--trust", help="Run the FILE.py that the run folder's files name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
