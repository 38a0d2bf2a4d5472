"""Federated learning in which clients send votes instead of weights."""

from fedvote.core import ConfigError, DataError, Dataset, Examples, FedVoteError, Key, ModelError, WireError
from fedvote.data.arrays import from_arrays, from_torch
from fedvote.deployed import load_network
from fedvote.engines.simulate import Simulation
from fedvote.methods import FedAvg, FedVote
from fedvote.network import Network

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "DataError",
    "Dataset",
    "Examples",
    "FedAvg",
    "FedVote",
    "FedVoteError",
    "Key",
    "ModelError",
    "Network",
    "Simulation",
    "WireError",
    "from_arrays",
    "from_torch",
    "load_network",
]
