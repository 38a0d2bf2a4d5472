"""The start of the command line, and the one place where errors become exit codes."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import click
import typer

from fedvote.cli.app import app
from fedvote.errors import Doubt, FedVoteError


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; a user's mistake becomes one sentence and exit code 2."""
    code: Any = 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", Doubt)
            warnings.showwarning = _say
            code = app(arguments, prog_name="fedvote", standalone_mode=False)
    except FedVoteError as error:
        code = _complain(str(error))
    except OSError as error:  # a file that cannot be read or written
        code = _complain(f"{error.filename or 'a file'}: {error.strerror or error}")
    except typer.Exit as stop:
        code = stop.exit_code
    except typer.Abort:
        code = 130
    except click.exceptions.NoArgsIsHelpError as error:
        typer.echo(error.format_message())
    except click.ClickException as error:
        code = _complain(error.format_message())
    except Exception as error:
        from fedvote.system.own_code import user_code_line

        if (where := user_code_line(error)) is None:
            raise
        code = _complain(where)
    sys.exit(code or 0)


def _say(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Show a doubt as one sentence, and any other warning as Python does."""
    if issubclass(category, Doubt):
        typer.echo(f"fedvote: warning: {message}", err=True)
    else:
        typer.echo(warnings.formatwarning(message, category, *place[:2]), err=True)


def _complain(sentence: str) -> int:
    typer.echo(f"fedvote: {sentence}", err=True)
    return 2
