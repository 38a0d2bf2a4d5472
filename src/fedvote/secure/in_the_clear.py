"""The server sees every ballot: rules can judge ballots, and codecs refuse everything but votes."""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.secure.secrecy import Secrecy


@dataclass(frozen=True)
class InTheClear(Secrecy):
    pass
