"""The errors that a user can mend. The command line shows their text as one sentence, with exit code 2."""

from __future__ import annotations

import re

COLOUR = re.compile("\x1b\\[[0-9;]*m")
"""What turns text in a terminal into another colour."""


class FedVoteError(Exception):
    """A mistake a user can mend. The text says what was given, what was expected and what to do."""


class ConfigError(FedVoteError):
    """A configuration that cannot be run."""


class DataError(FedVoteError):
    """A dataset that is missing, damaged or cannot be divided as asked."""


class ModelError(FedVoteError):
    """A network that cannot be voted on."""


class WireError(FedVoteError):
    """Bytes that are not the message they should be."""


class UnwritableError(WireError):
    """A message that its sender cannot write, since training made no numbers of some weights: it sends nothing."""


def reason(error: BaseException) -> str:
    """What went wrong in the first place, in one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return COLOUR.sub("", str(error).strip() or type(error).__name__).splitlines()[0]


class NoReferenceError(WireError):
    """A message that builds on an earlier one, which the receiver does not have: it has to be sent the whole."""
