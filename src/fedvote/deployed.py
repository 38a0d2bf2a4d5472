"""The deployed network as a file: votes packed into bits or trits, float weights, batch-norm statistics.

`network.safetensors` in a run folder. `load_network` gives an ordinary nn.Module, without the data it was trained on.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from fedvote.codecs import Binary, Float32, Ternary
from fedvote.config import read
from fedvote.core import Codec, ConfigError, Weights
from fedvote.draft import draft
from fedvote.federation import Federation, Snapshot
from fedvote.folder import NETWORK
from fedvote.models import MODELS
from fedvote.network import Network
from fedvote.tables import find

STATISTICS = "statistics/"
CODECS: dict[str, type[Binary] | type[Ternary] | type[Float32]] = {
    "binary": Binary,
    "ternary": Ternary,
    "float32": Float32,
}


def save_network(folder: Path, simulation: Federation, snapshot: Snapshot) -> Path:
    """Write the deployed model of a snapshot, as compactly as its weights allow."""
    weights, statistics = simulation.calibrated(snapshot)
    packing = _packing(weights.voted)
    codec: Codec = CODECS[packing](len(weights.voted))
    tensors = {
        "voted": torch.frombuffer(bytearray(codec.encode(weights.voted)), dtype=torch.uint8),
        "float": weights.floats,
        **{STATISTICS + name: value for name, value in statistics.items()},
    }
    about = {"packing": packing, "shape": simulation.data.shape, "classes": simulation.data.classes}
    path = folder / NETWORK
    with draft(path) as part:
        save_file(tensors, part, {"about": json.dumps(about)})
    return path


def load_network(folder: Path | str) -> nn.Module:
    """The deployed network of a run, in evaluation mode."""
    path = Path(folder) / NETWORK
    if not path.is_file():
        raise ConfigError(f"{folder} has no {NETWORK}: it is written when a run ends; resume the run to its end")
    config = read(str(Path(folder) / "config.toml"))
    try:
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["about"])
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise ConfigError(f"{path} is damaged ({error}): resume the run, which writes it again") from error
    module = find(MODELS, config.model.name, "model")(tuple(about["shape"]), len(about["classes"]))
    network = Network(module, config.seed, config.model.keep_float)
    voted = CODECS[about["packing"]](network.D).decode(tensors["voted"].numpy().tobytes()).float()
    statistics = {n.removeprefix(STATISTICS): t for n, t in tensors.items() if n.startswith(STATISTICS)}
    return network.module(Weights(voted, tensors["float"]), statistics)


def _packing(voted_D: Tensor) -> str:
    values = set(voted_D.unique().tolist())
    return "binary" if values <= {-1, 1} else "ternary" if values <= {-1, 0, 1} else "float32"
