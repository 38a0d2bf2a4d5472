"""The command line: typed functions that call the library. They import it late: help must not load torch."""

from fedvote.cli.app import app
from fedvote.cli.entry_point import main

__all__ = ["app", "main"]
