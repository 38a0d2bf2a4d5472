"""Federated learning in which clients send votes instead of weights."""

import fedvote.system.openmp  # noqa: F401  before torch, which everything else imports
from fedvote.core import Dataset, Examples
from fedvote.data.arrays import from_arrays, from_torch
from fedvote.engines.simulate import Simulation, simulate
from fedvote.errors import ConfigError, DataError, FedVoteError, ModelError, WireError
from fedvote.export import export_c, export_onnx
from fedvote.export.network_file import load_network, save_network
from fedvote.federation import Federation
from fedvote.methods import Eden, FedAvg, FedPAQ, FedVote, FetchSGD, SignSGD, Signum
from fedvote.network.network import Network
from fedvote.plan import Plan
from fedvote.randomness import Key

__version__ = "0.1.0"

__all__ = [
    "ConfigError",
    "DataError",
    "Dataset",
    "Eden",
    "Examples",
    "FedAvg",
    "FedPAQ",
    "FedVote",
    "FedVoteError",
    "Federation",
    "FetchSGD",
    "Key",
    "ModelError",
    "Network",
    "Plan",
    "SignSGD",
    "Signum",
    "Simulation",
    "WireError",
    "export_c",
    "export_onnx",
    "from_arrays",
    "from_torch",
    "load_network",
    "save_network",
    "simulate",
]
