"""The deployed network as a file: votes packed into bits or trits, float weights, batch-norm statistics.

`network.safetensors` is self-contained: it names the network, the scaling of its inputs and its classes. `load_network`
returns an ordinary nn.Module for unscaled inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from fedvote.core import Codec, Weights, scaled
from fedvote.errors import ConfigError, WireError
from fedvote.export.network_header import CODECS, DTYPES, About
from fedvote.federation import Federation, Snapshot
from fedvote.models import MODELS, make_model
from fedvote.network.network import Network
from fedvote.runs.config import ModelConfig
from fedvote.runs.folder import NETWORK, RunFolder
from fedvote.system.tensor_file import save_tensors

STATISTICS = "statistics/"


class Deployed(nn.Module):
    """A network that takes inputs as the dataset stores them (uint8, or unscaled floats) and scales them itself."""

    scales_inputs = True
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
        """`mean` and `std`: of each channel in training, for uint8 after division by 255; empty: no scaling.

        `shape` and `dtype`: of one stored input.
        """
        super().__init__()
        self.network, self.classes, self.shape, self.dtype = network, tuple(classes), tuple(shape), dtype
        self.register_buffer("mean", torch.tensor(mean))
        self.register_buffer("std", torch.tensor(std))

    def forward(self, x: Tensor) -> Tensor:
        # uint8 is divided by 255, floats are not: the wrong dtype would silently give wrong answers
        if x.dtype != self.dtype or tuple(x.shape[1:]) != self.shape:
            raise ConfigError(
                f"the inputs are {x.dtype} of shape {tuple(x.shape)}, expected them as in the training data: "
                f"{self.dtype} of shape (n, {', '.join(map(str, self.shape))}); convert them (one input: n = 1)"
            )
        channels = (-1,) + (1,) * (x.ndim - 2)
        y: Tensor = self.network(scaled(x, self.mean.view(channels), self.std.view(channels)))
        return y


def save_network(
    folder: Path | str, federation: Federation, snapshot: Snapshot, model: ModelConfig | None = None
) -> Path:
    """Write the deployed model of a snapshot, its votes packed. Returns the file's path.

    `model`: the name of the network, if it has one; `load_network` needs the module of a network without a name.
    """
    weights, statistics = federation.calibrated(snapshot)
    packing = _packing(weights.voted)
    codec: Codec = CODECS[packing](len(weights.voted))
    tensors = {
        "voted": torch.frombuffer(bytearray(codec.encode(weights.voted)), dtype=torch.uint8),
        "float": weights.floats,
        **{STATISTICS + name: value for name, value in statistics.items()},
    }
    train = federation.data.train
    about = About(
        packing=packing,
        shape=federation.data.shape,
        dtype=str(train.x.dtype).removeprefix("torch."),
        classes=federation.data.classes,
        mean=train.mean,
        std=train.std,
        layers=federation.network.fingerprint.hex(),
        model=model.name if model else None,
        keep_float=model.keep_float if model else None,
    )
    path = Path(folder) / NETWORK
    save_tensors(path, tensors, {"about": about.text})
    return path


def load_network(
    path: Path | str, module: nn.Module | None = None, keep_float: Sequence[str] | None = None
) -> Deployed:
    """Load the deployed network from a run folder or a network file, in evaluation mode.

    `module`: the network, if it has no name; `keep_float`: as in training. A network file cannot make this run foreign
    code: a network from FILE.py:NAME is built only if config.toml in the run folder names it.
    """
    if not Path(path).exists():
        raise ConfigError(f"there is no {path}, expected a run folder or its {NETWORK}")
    folder = RunFolder(Path(path)) if Path(path).is_dir() else None
    path = Path(path) / NETWORK if folder else Path(path)
    if not path.is_file():
        raise ConfigError(f"there is no {path}: it is written when a run ends; resume the run")
    with _errors_named(path):
        about, tensors = _read(path)
    network = Network(
        _make(path, about, folder) if module is None else module,
        keep_float=about.keep_float if keep_float is None else keep_float,
    )
    floats = tensors.pop("float")
    voted_bytes = tensors.pop("voted").numpy().tobytes()
    statistics = {name.removeprefix(STATISTICS): tensor for name, tensor in tensors.items()}
    found = about.layers, floats.shape, {name: tensor.shape for name, tensor in statistics.items()}
    if found != (network.fingerprint.hex(), (network.F,), network.norms):
        raise ConfigError(
            f"{path} is of another network than {about.model if module is None else 'the module given'}: it has "
            f"{len(floats)} float weights and {len(statistics)} batch-norm statistics, expected {network.F} and "
            f"{len(network.norms)}; use the layer names and shapes and the keep_float of training"
        )
    with _errors_named(path):
        voted = CODECS[about.packing](network.D).decode(voted_bytes).float()
    ready = network.module(Weights(voted, floats), statistics)
    dtype = DTYPES[about.dtype]
    return Deployed(ready, about.mean, about.std, about.classes, about.shape, dtype).eval().requires_grad_(False)


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Turn any error of a damaged file into one ConfigError that names the file."""
    try:
        yield
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError, WireError) as error:
        raise ConfigError(
            f"{path} is no network, is damaged, or is of an earlier version ({error}): give a run folder or its "
            f"{NETWORK}; resuming the run writes it again"
        ) from error


def _read(path: Path) -> tuple[About, dict[str, Tensor]]:
    """The header and the tensors of a file: votes, float weights and statistics, all checked."""
    with safe_open(path, "pt") as file:
        about = About.read(file.metadata()["about"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors = {name: tensors[name] for name in tensors if name in ("voted", "float") or name.startswith(STATISTICS)}
    for name, kind in (("voted", torch.uint8), ("float", torch.float32)):
        if (tensor := tensors[name]).ndim != 1 or tensor.dtype != kind:
            raise ValueError(f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}, expected a row of {kind}")
    for name, tensor in tensors.items():
        if not tensor.isfinite().all() or (name.endswith("var") and (tensor < 0).any()):
            raise ValueError(f"{name} has values that are not finite, or variances below 0")
    return about, tensors


def _make(path: Path, about: About, folder: RunFolder | None) -> nn.Module:
    """Build the network that a file names: one of fedvote's, or one that the run's own config.toml names."""
    if about.model is None:
        raise ConfigError(f"{path} is of a network without a name: pass it as `module`, as it was before training")
    if about.model not in MODELS and (folder is None or folder.model() != about.model):
        raise ConfigError(
            f"{path} is of the network {about.model!r}, foreign code that no file may have run; expected one of "
            f"{', '.join(MODELS)}, or a run whose config.toml names it: give that folder, or pass it as `module`"
        )
    return make_model(about.model, about.shape, len(about.classes))


def _packing(voted_D: Tensor) -> str:
    values = set(voted_D.unique().tolist())
    return "binary" if values <= {-1, 1} else "ternary" if values <= {-1, 0, 1} else "float32"
