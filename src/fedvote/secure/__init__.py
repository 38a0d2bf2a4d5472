"""How much of the ballots the server sees, by name: each ballot, or only the tally. See docs/secure-tally.md."""

from __future__ import annotations

from fedvote.secure.in_the_clear import InTheClear
from fedvote.secure.secrecy import Secrecy
from fedvote.secure.secure_tally import SecureTally

SECRECIES: dict[str, type[Secrecy]] = {
    "none": InTheClear,
    "tally": SecureTally,
}

__all__ = ["SECRECIES", "InTheClear", "Secrecy", "SecureTally"]
