"""Federated methods by name, one per file."""

from __future__ import annotations

from fedvote.method import Method
from fedvote.methods.eden import Eden
from fedvote.methods.fedavg import FedAvg
from fedvote.methods.fedpaq import FedPAQ
from fedvote.methods.fedvote import FedVote
from fedvote.methods.fetchsgd import FetchSGD
from fedvote.methods.signsgd import SignSGD
from fedvote.methods.signum import Signum
from fedvote.registry import part_of

METHODS: dict[str, type[Method]] = {
    "fedvote": FedVote,
    "fedavg": FedAvg,
    "fedpaq": FedPAQ,
    "signsgd": SignSGD,
    "signum": Signum,
    "fetchsgd": FetchSGD,
    "eden": Eden,
}


def method_of(given: Method | str | None) -> Method:
    """A method, or the one of this name at its default settings; not given: FedVote."""
    made: Method = part_of(METHODS, Method, given, "method") if isinstance(given, str) else given or FedVote()
    return made


__all__ = ["METHODS", "Eden", "FedAvg", "FedPAQ", "FedVote", "FetchSGD", "SignSGD", "Signum", "method_of"]
