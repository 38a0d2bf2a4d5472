"""The server sees every ballot: rules can judge them, and codecs refuse what is none."""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.secure.secrecy import Secrecy


@dataclass(frozen=True)
class InTheClear(Secrecy):
    pass
