"""Errors that a user can fix. The command line shows their text as one sentence, with exit code 2."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

COLOUR = re.compile("\x1b\\[[0-9;]*m")
"""The terminal codes that colour text."""


class FedVoteError(Exception):
    """A mistake that a user can fix. The text says what was given, what was expected and what to do."""


class ConfigError(FedVoteError):
    """A configuration that cannot be run."""


class DataError(FedVoteError):
    """A dataset that is missing, damaged or cannot be divided as asked."""


class ModelError(FedVoteError):
    """A network that cannot be voted on."""


class WireError(FedVoteError):
    """Bytes that are not the expected message, or values that a codec cannot write."""


class UnwritableError(WireError):
    """A message that its sender cannot write, because weights became NaN in training: it sends nothing."""


class LateBallotError(WireError):
    """A valid ballot that came after the server fixed the voters of a secure tally."""


class NoReferenceError(WireError):
    """A message that builds on a broadcast or a start that the receiver does not have: send it one that needs less."""


class NoProblemError(WireError):
    """A task with only the digest of a configuration that the receiver does not have: send it the whole."""


class Doubt(UserWarning):
    """A request that can be met, but is probably a mistake. The command line prints it as one sentence."""


def reason(error: BaseException) -> str:
    """The first cause of an error, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return COLOUR.sub("", str(error).strip() or type(error).__name__).splitlines()[0]


def article(name: str) -> str:
    """A noun with its article: an int, a dict."""
    return f"a{'n' * (name[0] in 'aeiouAEIO')} {name}"


def some(names: Sequence[str], most: int = 4) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown name: the known name that is nearest to it, if one is near."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""
