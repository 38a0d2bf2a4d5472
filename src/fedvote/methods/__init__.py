"""Federated methods by name, one a file."""

from __future__ import annotations

from fedvote.method import Method
from fedvote.methods.fedavg import FedAvg
from fedvote.methods.fedvote import FedVote

METHODS: dict[str, type[Method]] = {"fedvote": FedVote, "fedavg": FedAvg}

__all__ = ["METHODS", "FedAvg", "FedVote"]
