"""Where training starts: from weights that the seed draws, or from those that the module brings."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from fedvote.errors import Doubt, ModelError, reason, some
from fedvote.network.static_batch_norm import batch_norms, frozen_norms, norm_statistics
from fedvote.network.voted_weights import VOTABLE
from fedvote.randomness import Key

Start = Literal["seed", "given"]


def draw(module: nn.Module, key: Key) -> list[str]:
    """Draw the weights of all layers from this key alone; returns the parameters that no layer can draw.

    Kaiming for convolutions and linear layers, biases zero; other layers of torch by their own rule.
    """
    drawn: set[int] = set()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(key.number("init others"))
        for layer in module.modules():
            reset = getattr(layer, "reset_parameters", None) or getattr(layer, "_reset_parameters", None)
            if callable(reset) and not isinstance(layer, VOTABLE):
                reset()
                drawn |= {id(parameter) for parameter in layer.parameters(recurse=False)}
    generator = key.torch("init")
    for layer in module.modules():
        if isinstance(layer, VOTABLE):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
            drawn |= {id(parameter) for parameter in layer.parameters(recurse=False)}
    return [name for name, parameter in module.named_parameters() if id(parameter) not in drawn]


def with_weights(module: nn.Module, source: Path | str | Mapping[str, Tensor]) -> nn.Module:
    """A copy of the module with these weights: a state dict, or a file of one (.safetensors, or torch.save's)."""
    weights, where = (source, "the state dict given") if isinstance(source, Mapping) else (_read(Path(source)), source)
    own = module.state_dict()
    measured = batch_norms(module).keys() - frozen_norms(module).keys()  # anew, so no start has to have them
    other = norm_statistics({name: module.get_submodule(name) for name in measured}) | dict(weights)
    for name, value in own.items():
        if name not in other:
            raise ModelError(
                f"{where} has no {name}, expected all weights of the network: it has {some(sorted(weights))}; "
                "use the file of this network, or a network with the same layer names"
            )
        if other[name].shape != value.shape:
            raise ModelError(
                f"{where} has {name} of shape {tuple(other[name].shape)}, but the network has {tuple(value.shape)}: "
                "change the network's layer, or leave the weight out and load the rest into the module yourself"
            )
    if foreign := other.keys() - own.keys():
        raise ModelError(
            f"{where} has {some(sorted(foreign))}, which the network does not have: use the network it was saved from"
        )
    copied = copy.deepcopy(module)
    copied.load_state_dict(other)
    return copied


def warn_of_rounding(module: nn.Module) -> None:
    """Runs train in float32: warn if that rounds given weights."""
    double = {name: p for name, p in module.named_parameters() if p.dtype == torch.float64}
    if rounded := [name for name, p in double.items() if not torch.equal(p, p.float().double())]:
        doubt = f"{some(rounded)}: float64 weights are rounded to float32, in which runs train"
        warnings.warn(doubt, Doubt, stacklevel=4)


def _read(path: Path) -> Mapping[str, Tensor]:
    if not path.is_file():
        raise ModelError(f'start is {str(path)!r}, expected "seed", "given" or a file of weights that exists')
    try:
        found = load_file(path) if path.suffix == ".safetensors" else torch.load(path, "cpu", weights_only=True)
    except Exception as error:  # a damaged pickle may raise anything
        raise ModelError(f"{path} cannot be read ({reason(error)}): save module.state_dict() in it") from error
    if not isinstance(found, Mapping) or not all(isinstance(value, Tensor) for value in found.values()):
        raise ModelError(f"{path} is not a state dict, expected tensors by name: save module.state_dict() in it")
    return found
