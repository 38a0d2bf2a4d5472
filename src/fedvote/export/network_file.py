"""The deployed network as a file: votes packed into bits or trits, float weights, batch-norm statistics.

`network.safetensors` is self-contained: it names the network, the scaling of its inputs and its classes. `load_network`
returns the same module as `deployed` of the run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from fedvote import contracts
from fedvote.core import Codec, State, Weights
from fedvote.errors import ConfigError, WireError
from fedvote.export.network_header import CODECS, DTYPES, About
from fedvote.federation import Federation
from fedvote.models import MODELS, make_model
from fedvote.network.deployed import Deployed, bare, count_votes, packing_of
from fedvote.network.network import Network
from fedvote.network.start import Start
from fedvote.rounds.snapshot import Snapshot
from fedvote.runs.config import ModelConfig
from fedvote.runs.folder import NETWORK, RunFolder
from fedvote.system.own_code import check_trust, files_in
from fedvote.system.tensor_file import save_tensors

STATISTICS = "statistics/"
BUFFERS = "buffers/"  # that are not batch norms'
LARGEST_TRIAL = 2**18  # numbers in an input that an unknown file may have a network run on
WEIGHTS_A_BYTE = 8  # at most, in any packing


def save_network(
    folder: Path | str,
    federation: Federation,
    snapshot: Snapshot,
    model: ModelConfig | None = None,
    statistics: State | None = None,
) -> Path:
    """Write the deployed network of a snapshot, its votes packed. Returns the file's path.

    `statistics`: of its batch norms, if the federation has no examples to measure them on.
    `model`: the name of the network, if it has one; `load_network` needs the module of a network without a name.
    """
    if not isinstance(federation, Federation):
        raise ConfigError(f"got {contracts.kind(federation)}, expected a Federation: give run.federation")
    if Path(folder).is_file():
        raise ConfigError(f"{folder} is a file, expected a folder, in which {NETWORK} is written: give another name")
    if statistics is None:
        weights, statistics = federation.calibrated(snapshot)
    else:
        weights = federation.method.models(snapshot.to(torch.device("cpu")).state)["deployed"]
    packing = packing_of(weights.voted)
    codec: Codec = CODECS[packing](len(weights.voted))
    tensors = {
        "voted": torch.frombuffer(bytearray(codec.encode(weights.voted)), dtype=torch.uint8),
        "float": weights.floats,
        **{STATISTICS + name: value for name, value in (statistics | federation.network.kept_statistics).items()},
        **{BUFFERS + name: _apart(value) for name, value in federation.network.constants.items()},
    }
    train = federation.data.train
    about = About(
        packing=packing,
        shape=federation.data.shape,
        dtype=str(train.x.dtype).removeprefix("torch."),
        classes=federation.data.classes,
        mean=train.mean,
        std=train.std,
        layers=federation.network.layout.hex(),
        model=model.name if model else None,
        keep_float=model.keep_float if model else None,
        voted=[slot.name for slot in federation.network.voted],
        seed=federation.plan.seed,
    )
    path = Path(folder) / NETWORK
    save_tensors(path, tensors, {"about": about.text})
    return path


def load_network(
    path: Path | str, module: nn.Module | None = None, keep_float: Sequence[str] | None = None, trust: bool = False
) -> Deployed:
    """Load the deployed network from a run folder or a network file, in evaluation mode.

    module: the network, if it has no name
    keep_float: as in training
    trust: run the FILE.py that the file names, to build a network from FILE.py:NAME. Otherwise that is built only if
    this process has run the FILE.py before: no file can make this run its author's code
    """
    if not isinstance(path, str | Path):
        raise ConfigError(f"got {contracts.kind(path)}, expected the path of a run folder or of its {NETWORK}")
    if module is not None and not isinstance(module, nn.Module):
        raise ConfigError(f"module is {contracts.kind(module)}, expected an nn.Module: the network before training")
    if not Path(path).exists():
        raise ConfigError(f"there is no {path}, expected a run folder or its {NETWORK}")
    path = Path(path) / NETWORK if Path(path).is_dir() else Path(path)
    if not path.is_file():
        how = RunFolder(path.parent).how_to_get_network()
        raise ConfigError(f"there is no {path}: it is written when a run ends; {how}")
    with _errors_named(path):
        about, tensors = _read(path)
    called = about.model if module is None else "the module given"
    made = _make(path, about, tensors, trust) if module is None else bare(module)
    network = _as_trained(path, about, made, keep_float)
    floats = tensors.pop("float")
    voted_bytes = tensors.pop("voted").numpy().tobytes()
    statistics, buffers = (
        {name.removeprefix(kind): tensor for name, tensor in tensors.items() if name.startswith(kind)}
        for kind in (STATISTICS, BUFFERS)
    )
    found = about.layers, floats.shape, _shapes(statistics)
    norms = network.norms | _shapes(network.kept_statistics)
    same_buffers = not buffers or _shapes(buffers) == _shapes(network.constants)  # earlier files have none
    if found != (network.layout.hex(), (network.F,), norms) or not same_buffers:
        raise ConfigError(
            f"{path} is of another network than {called}: it has {len(floats)} float weights and "
            f"{len(statistics | buffers)} batch-norm statistics and other buffers, expected {network.F} and "
            f"{len(norms | network.constants)}; use the layer names and shapes and the "
            "keep_float of training"
        )
    with _errors_named(path):
        voted = CODECS[about.packing](network.D).decode(voted_bytes).float()
    ready = network.module(Weights(voted, floats), statistics | buffers)
    dtype, votes = DTYPES[about.dtype], count_votes(voted)
    deployed = Deployed(ready, about.mean, about.std, about.classes, about.shape, dtype, votes)
    return deployed.eval().requires_grad_(False)


def _as_trained(path: Path, about: About, module: nn.Module, keep_float: Sequence[str] | None) -> Network:
    """The module with the same weights voted on as in training, and batch norms of the same kind."""
    voted = about.voted if keep_float is None else None
    keep_float = about.keep_float if keep_float is None else keep_float
    if voted is None and keep_float is None and math.prod(about.shape) > LARGEST_TRIAL:
        raise ConfigError(
            f"{path} does not say which layers are voted on, and its inputs of shape {about.shape} are too large to "
            "find out by running it: name the layers that stay float (keep_float)"
        )
    starts: tuple[Start, Start] = ("seed", "given")  # batch norm has parameters if the initial weights were given
    votable = voted is None and about.packing != "float32"  # else a network that only float methods train will do, too
    with _errors_named(path):
        either = [
            Network(module, keep_float=keep_float, start=each, shape=about.shape, votes=votable, voted=voted)
            for each in starts
        ]
    return either[about.layers == either[1].layout.hex()]


@contextmanager
def _errors_named(path: Path) -> Iterator[None]:
    """Turn any error of a damaged file into one ConfigError that names the file."""
    try:
        yield
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError, WireError) as error:
        raise ConfigError(
            f"{path} is not a network, is damaged, or is of an earlier version ({error}): give a run folder or its "
            f"{NETWORK}; resuming the run writes it again"
        ) from error


def _read(path: Path) -> tuple[About, dict[str, Tensor]]:
    """The header and the tensors of a file: votes, float weights and statistics, all checked."""
    with safe_open(path, "pt") as file:
        about = About.read(file.metadata()["about"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors = {
        name: tensors[name] for name in tensors if name in ("voted", "float") or name.startswith((STATISTICS, BUFFERS))
    }
    for name, kind in (("voted", torch.uint8), ("float", torch.float32)):
        if (tensor := tensors[name]).ndim != 1 or tensor.dtype != kind:
            raise ValueError(f"{name} is {tensor.dtype} of shape {tuple(tensor.shape)}, expected a row of {kind}")
    for name, tensor in tensors.items():
        if name.startswith(BUFFERS):  # such as a mask of minus infinity
            continue
        if not tensor.isfinite().all() or (name.endswith("var") and (tensor < 0).any()):
            raise ValueError(f"{name} has values that are not finite, or variances below 0")
    return about, tensors


def _make(path: Path, about: About, tensors: dict[str, Tensor], trust: bool) -> nn.Module:
    """Build the network that a file names: one of fedvote's, or a user's own, if its code may run."""
    if about.model is None:
        raise ConfigError(f"{path} is of a network without a name: pass it as `module`, as it was before training")
    if about.model not in MODELS:
        if not trust:
            check_trust(path, files_in(about.model))
        return make_model(about.model, about.shape, len(about.classes), about.seed)
    with torch.device("meta"):  # shapes without memory: the file may claim inputs of any size
        claimed = sum(
            weight.numel() for weight in make_model(about.model, about.shape, len(about.classes)).parameters()
        )
    held = len(tensors["float"]) + WEIGHTS_A_BYTE * len(tensors["voted"])
    if claimed > held:
        raise ConfigError(
            f"{path} is of another network than it claims: {about.model} for inputs of shape {tuple(about.shape)} has "
            f"{claimed:,} weights, and the file holds {held:,} at most; get an undamaged file"
        )
    return make_model(about.model, about.shape, len(about.classes))


def _shapes(tensors: State) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _apart(value: Tensor) -> Tensor:
    """A copy with memory of its own, as safetensors needs it."""
    return value.clone(memory_format=torch.contiguous_format)
