"""Options that several commands share."""

from typing import Annotated

import typer

Settings = Annotated[list[str] | None, typer.Option("--set", metavar="A.B=C", help="Change one key; may be repeated.")]
