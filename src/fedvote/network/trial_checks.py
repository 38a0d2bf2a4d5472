"""What a network's trial checks: random numbers, buffers, batch norms and outputs. A failure is one sentence."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd

from fedvote import contracts
from fedvote.core import Task
from fedvote.errors import Doubt, ModelError, reason
from fedvote.network.dropout import KeyedDropout
from fedvote.network.static_batch_norm import StaticBatchNorm

if TYPE_CHECKING:
    from fedvote.network.network import Network

CALLED = (
    "; it is called with one tensor, a batch of inputs: wrap a network that takes a dict, or more, in a module whose "
    "forward takes that tensor"
)


WIDTHS: dict[type[nn.Module], tuple[str, int]] = {
    nn.Linear: ("in_features", -1),
    _ConvNd: ("in_channels", 1),
    _BatchNorm: ("num_features", 1),
    nn.RNNBase: ("input_size", -1),
}
"""Layers with the name of the width of their inputs, and its axis in a batch."""


def advice(module: nn.Module, path: Sequence[str], shape: Sequence[int], inputs: Mapping[str, Any]) -> str:
    """What to do about a layer that fails: the last one of the path. `inputs`: of each layer, in its last call."""
    if not path:
        return CALLED
    layer = module.get_submodule(path[-1])
    if isinstance(layer, nn.Embedding | nn.EmbeddingBag):
        return "; inputs come as floats: give the embedding x.long()"
    if isinstance(layer, nn.Conv2d) and len(shape) == 3 and shape[0] != layer.in_channels == shape[2]:
        return "; images come as (channels, height, width): give from_arrays x.transpose(0, 3, 1, 2)"
    given = inputs[path[-1]]
    for kind, (width, axis) in WIDTHS.items():
        if not isinstance(layer, kind) or not isinstance(given, Tensor) or given.ndim < 2:
            continue
        if (takes := getattr(layer, width)) != (gets := given.shape[axis]):
            whose = "the data have" if given.shape[1:] == torch.Size(shape) else "it gets"
            return f"; the layer takes {takes} ({width}), but {whose} {gets}: set {width} to {gets}"
    return "" if path[-1] else CALLED


def check_repeatable(network: Network, parameters: Mapping[str, Tensor], x: Tensor) -> None:
    """Refuse random numbers that do not follow from the run's seed, and numbers kept for the next call."""
    found = []
    with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            with KeyedDropout():
                found.append(functional_call(network._batch, dict(parameters), (x.clone(),)))
    first, again, other = found
    if not torch.allclose(first, again, rtol=1e-4, atol=1e-5, equal_nan=True):
        raise ModelError(
            "the forward pass gives other outputs for the same inputs when it is called again, so it keeps numbers in "
            "an attribute, which clients would share and no round would send: make them constants, or leave them out"
        )
    if not torch.allclose(first, other, rtol=1e-3, atol=1e-3, equal_nan=True):
        raise ModelError(
            "the forward pass draws random numbers that do not follow from the run's seed, so no run would repeat: use "
            "nn.Dropout or F.dropout, or draw nothing"
        )


def check_buffers(network: Network, before: Mapping[str, Tensor]) -> None:
    """Refuse a forward pass that keeps numbers for the next one: clients would share them."""
    now = dict(network._batch.named_buffers())
    if changed := [name for name in before if name in now and not torch.equal(before[name], now[name])]:
        raise ModelError(
            f"the forward pass changes {', '.join(changed)}, which clients would share and no round would send: make "
            "it a constant, or leave it out (spectral_norm: call torch.nn.utils.parametrize.remove_parametrizations)"
        )


def check_norms(network: Network, path: list[str]) -> None:
    norms = [name for name, layer in network._batch.named_modules() if isinstance(layer, StaticBatchNorm)]
    if twice := [name for name in norms if path.count(name) > 2]:  # once in training mode and once in evaluation
        raise ModelError(
            f"batch norm {', '.join(twice)} runs more than once in a forward pass, expected once, because its "
            "statistics belong to one place: use a separate batch norm in every place"
        )


def check_outputs(y: Any, shape: Sequence[int], classes: int, task: Task) -> None:
    if not isinstance(y, Tensor):
        many = isinstance(y, tuple | list | dict) and len(y) > 1
        got = f"{len(y)} outputs as {contracts.kind(y)}" if many else contracts.kind(y)
        raise ModelError(
            f"the network gives {got} for inputs of shape {tuple(shape)}, expected one tensor ({classes},): return "
            f"{'one of them' if many else 'that tensor'} from forward, or wrap the network in a module that does"
        )
    if y.shape != (2, classes):
        one, several = ("target", "targets") if task == "regression" else ("class", "classes")
        fix = (
            "return (n, 1), without squeeze" if y.shape == (2,) and classes == 1 else "change the network's last layer"
        )
        if task == "classification" and classes == 2 and y.shape in ((2,), (2, 1)):  # as with BCEWithLogitsLoss
            fix += """; or, for one output (n, 1), make the data with task="multi-label" and y[:, None]"""
        raise ModelError(
            f"the network gives outputs of shape {tuple(y.shape[1:])} for one input of shape {tuple(shape)}, "
            f"but the data has {classes} {one if classes == 1 else several}: expected ({classes},); {fix}"
        )
    if torch.is_inference_mode_enabled():
        raise ModelError("torch.inference_mode is on, in which nothing can train: call simulate outside of it")
    if not y.requires_grad:
        raise ModelError(
            "the network's output has no gradient, so nothing can train: forward detaches it, as .detach(), .data, "
            "torch.no_grad and argmax do; return the outputs of the last layer"
        )


def check_answers(network: Network, parameters: Mapping[str, Tensor], answers: Any, y: Tensor, x_B: Tensor) -> None:
    """Refuse outputs of another kind in evaluation; warn if an input alone has other outputs than in a batch.

    `answers`: in evaluation; `y`: in training.
    """
    if not isinstance(answers, Tensor) or answers.shape != y.shape or not answers.is_floating_point():
        found = contracts.form(answers) if isinstance(answers, Tensor) else contracts.kind(answers)
        raise ModelError(
            f"the network gives {found} in evaluation, but {contracts.form(y)} in training: expected the same kind of "
            "outputs; return those of the last layer, whatever self.training is"
        )
    why = ""
    try:
        with torch.no_grad(), KeyedDropout():
            alone = torch.cat([functional_call(network._tracking, dict(parameters), (x[None].clone(),)) for x in x_B])
        size = float(answers.detach().abs().max().nan_to_num())
        same = alone.shape == y.shape and torch.allclose(alone, answers, rtol=1e-3, atol=1e-3 * size, equal_nan=True)
    except Exception as error:  # a forward may raise anything
        same, why = False, f" (alone: {reason(error)})"
    if not same:
        warnings.warn(
            f"the network gives an input alone other outputs than in a batch{why}, but a device has one input at a "
            "time: give squeeze and flatten an axis, and use nn.BatchNorm to normalise over a batch",
            Doubt,
            stacklevel=6,
        )
