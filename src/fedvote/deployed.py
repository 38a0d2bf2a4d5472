"""The deployed network as a file: votes packed into bits or trits, float weights, batch-norm statistics.

`network.safetensors` in a run folder needs nothing else of it: it says what the network is, how inputs were scaled, and
what its outputs mean. `load_network` gives an ordinary nn.Module that takes inputs as the data have them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from fedvote.codecs import Binary, Float32, Ternary
from fedvote.config import ModelConfig
from fedvote.core import Codec, ConfigError, Weights, scaled
from fedvote.federation import Federation, Snapshot
from fedvote.folder import NETWORK
from fedvote.models import make_model
from fedvote.network import Network
from fedvote.tensor_file import save_tensors

STATISTICS = "statistics/"
CODECS: dict[str, type[Binary] | type[Ternary] | type[Float32]] = {
    "binary": Binary,
    "ternary": Ternary,
    "float32": Float32,
}


class Deployed(nn.Module):
    """A network for inputs as the data have them: bytes, or floats that were not scaled yet."""

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        network: nn.Module,
        mean: Sequence[float],
        std: Sequence[float],
        classes: Sequence[str],
        shape: Sequence[int],
        dtype: torch.dtype,
    ):
        """`mean` and `std`: of each channel in training, of bytes after they are divided by 255; empty: not scaled.

        `shape` and `dtype`: of one input, as the data have it.
        """
        super().__init__()
        self.network, self.classes, self.shape, self.dtype = network, tuple(classes), tuple(shape), dtype
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    def forward(self, x: Tensor) -> Tensor:
        channels = (-1,) + (1,) * (x.ndim - 2)
        y: Tensor = self.network(scaled(x, self.mean.view(channels), self.std.view(channels)))
        return y


def save_network(
    folder: Path | str, simulation: Federation, snapshot: Snapshot, model: ModelConfig | None = None
) -> Path:
    """Write the deployed model of a snapshot, as compactly as its weights allow.

    `model`: by what name the network is known, unless it is one of the user's own that has none.
    """
    weights, statistics = simulation.calibrated(snapshot)
    packing = _packing(weights.voted)
    codec: Codec = CODECS[packing](len(weights.voted))
    tensors = {
        "voted": torch.frombuffer(bytearray(codec.encode(weights.voted)), dtype=torch.uint8),
        "float": weights.floats,
        **{STATISTICS + name: value for name, value in statistics.items()},
    }
    train = simulation.data.train
    about = {
        "packing": packing,
        "shape": simulation.data.shape,
        "dtype": str(train.x.dtype).removeprefix("torch."),
        "classes": simulation.data.classes,
        "mean": train.mean,
        "std": train.std,
        "layers": simulation.network.fingerprint.hex(),
        "model": model and model.name,
        "keep_float": model and model.keep_float,
    }
    path = Path(folder) / NETWORK
    save_tensors(path, tensors, {"about": json.dumps(about)})
    return path


def load_network(
    path: Path | str, module: nn.Module | None = None, keep_float: Sequence[str] | None = None
) -> Deployed:
    """The deployed network of a run, by its folder or its file, in evaluation mode.

    `module`: the network itself, if it is one that no configuration named; `keep_float`, as in training.
    """
    if not Path(path).exists():
        raise ConfigError(f"there is no {path}, expected a run folder or its {NETWORK}")
    path = Path(path) / NETWORK if Path(path).is_dir() else Path(path)
    if not path.is_file():
        raise ConfigError(f"there is no {path}: it is written when a run ends; resume the run to its end")
    try:
        with safe_open(path, "pt") as file:
            about = json.loads(file.metadata()["about"])
            tensors: dict[str, Tensor] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        voted_bytes, floats = tensors["voted"].numpy().tobytes(), tensors["float"]
        scaling, dtype, codec = (about["mean"], about["std"]), getattr(torch, about["dtype"]), CODECS[about["packing"]]
        name, kept, layers = about["model"], about["keep_float"], about["layers"]
        classes, shape = about["classes"], about["shape"]
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{path} is no network, is damaged, or is of an earlier version ({error}): give a run folder or its "
            f"{NETWORK}; resuming the run writes it again"
        ) from error
    if module is None and name is None:
        raise ConfigError(f"{path} is of a network without a name: pass it as `module`, as it was before training")
    network = Network(
        make_model(name, shape, len(classes)) if module is None else module,
        keep_float=kept if keep_float is None else keep_float,
    )
    statistics = {n.removeprefix(STATISTICS): t for n, t in tensors.items() if n.startswith(STATISTICS)}
    if (network.fingerprint.hex(), network.F, network.norms) != (layers, len(floats), statistics.keys()):
        raise ConfigError(
            f"{path} is of another network than {name if module is None else 'the module given'}: it has {len(floats)} "
            f"float weights and {len(statistics)} statistics of batch norm, expected {network.F} and "
            f"{len(network.norms)}; layers have to have the names and shapes that they had in training, and the same "
            "ones to be kept float (keep_float)"
        )
    voted = codec(network.D).decode(voted_bytes).float()
    ready = network.module(Weights(voted, floats), statistics)
    return Deployed(ready, *scaling, classes, shape, dtype).eval().requires_grad_(False)


def _packing(voted_D: Tensor) -> str:
    values = set(voted_D.unique().tolist())
    return "binary" if values <= {-1, 1} else "ternary" if values <= {-1, 0, 1} else "float32"
