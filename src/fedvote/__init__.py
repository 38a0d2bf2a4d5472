"""Federated learning in which clients send votes instead of weights."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import fedvote.system.openmp  # noqa: F401  before torch, which the names below import

if TYPE_CHECKING:
    from fedvote.core import Dataset, Examples
    from fedvote.data.arrays import from_arrays, from_pandas, from_torch
    from fedvote.data.hugging_face import from_hugging_face
    from fedvote.data.validation import hold_out
    from fedvote.engines.simulate import Simulation, simulate
    from fedvote.errors import ConfigError, DataError, Doubt, FedVoteError, ModelError, WireError
    from fedvote.export import export_c, export_onnx, export_web
    from fedvote.export.network_file import load_network, save_network
    from fedvote.federation import Federation
    from fedvote.methods import Eden, FedAvg, FedPAQ, FedVote, FetchSGD, SignSGD, Signum
    from fedvote.network.evaluate import evaluate
    from fedvote.network.network import Network
    from fedvote.plan import Plan
    from fedvote.randomness import Key
    from fedvote.runs.track import track

__version__ = "0.2.0"

__all__ = [
    "ConfigError",
    "DataError",
    "Dataset",
    "Doubt",
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
    "evaluate",
    "export_c",
    "export_onnx",
    "export_web",
    "from_arrays",
    "from_hugging_face",
    "from_pandas",
    "from_torch",
    "hold_out",
    "load_network",
    "save_network",
    "simulate",
    "track",
]

# Each name is imported when it is first asked for: `fedvote --help` must not wait for torch.
_NAMES = {
    "fedvote.core": ("Dataset", "Examples"),
    "fedvote.data.arrays": ("from_arrays", "from_pandas", "from_torch"),
    "fedvote.data.hugging_face": ("from_hugging_face",),
    "fedvote.data.validation": ("hold_out",),
    "fedvote.engines.simulate": ("Simulation", "simulate"),
    "fedvote.errors": ("ConfigError", "DataError", "Doubt", "FedVoteError", "ModelError", "WireError"),
    "fedvote.export": ("export_c", "export_onnx", "export_web"),
    "fedvote.export.network_file": ("load_network", "save_network"),
    "fedvote.federation": ("Federation",),
    "fedvote.methods": ("Eden", "FedAvg", "FedPAQ", "FedVote", "FetchSGD", "SignSGD", "Signum"),
    "fedvote.network.evaluate": ("evaluate",),
    "fedvote.network.network": ("Network",),
    "fedvote.plan": ("Plan",),
    "fedvote.randomness": ("Key",),
    "fedvote.runs.track": ("track",),
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Import a public name from its module, and keep it (PEP 562)."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'fedvote' has no attribute {name!r}")
    globals()[name] = found = getattr(import_module(_MODULE_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
