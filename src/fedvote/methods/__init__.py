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

METHODS: dict[str, type[Method]] = {
    "fedvote": FedVote,
    "fedavg": FedAvg,
    "fedpaq": FedPAQ,
    "signsgd": SignSGD,
    "signum": Signum,
    "fetchsgd": FetchSGD,
    "eden": Eden,
}

__all__ = ["METHODS", "Eden", "FedAvg", "FedPAQ", "FedVote", "FetchSGD", "SignSGD", "Signum"]
