"""A network's trial before the first round: on random inputs of the data's shape, alone and as a stack of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedvote.core import Examples, Task
from fedvote.errors import ModelError, reason
from fedvote.network.dropout import KeyedDropout
from fedvote.network.static_batch_norm import StaticBatchNorm
from fedvote.network.voted_weights import trial_inputs

if TYPE_CHECKING:
    from fedvote.network.network import Network


MOST = 256  # examples to try
CALLED = (
    "; it is called with one tensor, a batch of inputs: wrap a network that takes a dict, or more, in a module whose "
    "forward takes that tensor"
)


@dataclass(frozen=True)
class Trial:
    stackable: bool  # whether a stack of clients can share one call
    dropout: bool  # whether training draws dropout masks
    unused: frozenset[str]  # parameters without a gradient


def try_out(network: Network, shape: Sequence[int], classes: int, task: Task = "classification") -> Trial:
    """Run a copy of a network that nobody else uses. A failure is a ModelError that names the layer."""
    path: list[str] = []
    for name, layer in (*network._tracking.named_modules(), *network._batch.named_modules()):
        layer.register_forward_pre_hook(lambda _, __, name=name: path.append(name))
    x = trial_inputs(4, shape).to(network.start.voted.device).view(2, 2, *shape)
    start, noise = network.start, torch.tensor([[1, 2], [3, 4]], dtype=torch.int32, device=x.device)
    weights = network._parameters(start.voted, start.floats)
    parameters = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
    training, evaluating = KeyedDropout(), KeyedDropout()
    buffers = {name: buffer.clone() for name, buffer in network._batch.named_buffers()}
    try:
        with training, torch.enable_grad():
            network.calibrate(start, x[0])
            path.clear()
            y: Any = functional_call(network._batch, parameters, (x[0],))
        with evaluating:
            network._tracking.eval()
            functional_call(network._tracking, parameters, (x[0],))
    except ModelError:
        raise
    except Exception as error:
        where, more = (f"layer {path[-1]!r}", "") if path and path[-1] else ("its forward", CALLED)
        if more == "" and isinstance(network._batch.get_submodule(path[-1]), nn.Embedding):
            more = "; inputs come as floats: give the embedding x.long()"
        raise ModelError(
            f"the network fails at {where} on inputs of shape {tuple(shape)}: {reason(error)}{more}"
        ) from error
    if evaluating.active:
        raise ModelError(
            "the forward pass calls dropout in evaluation as well, which would make the deployed network random: pass "
            "training=self.training (dropout_p=p if self.training else 0.0 for attention), or use nn.Dropout"
        )
    _check_norms(network, path)
    _check_outputs(y, shape, classes, task)
    if not y.requires_grad:
        raise ModelError(
            "the network's output has no gradient, so nothing can train: forward detaches it, as .detach(), .data, "
            "torch.no_grad and argmax do; return the outputs of the last layer"
        )
    _check_buffers(network, buffers)
    _check_repeatable(network, parameters, x[0])
    network.dropout = training.active > 0
    targets = torch.zeros(2, 2, classes) if task != "classification" else torch.zeros(2, 2, dtype=torch.int64)
    gradients = torch.autograd.grad(y.sum(), list(parameters.values()), allow_unused=True)
    unused = frozenset(name for name, gradient in zip(parameters, gradients, strict=True) if gradient is None)
    return Trial(_stackable(network, x, targets.to(x.device), noise), network.dropout, unused)


def try_values(network: Network, examples: Examples, name: str) -> None:
    """Run whole-number inputs that are largest or smallest in some place: a token may be outside an embedding."""
    few = examples.x[:MOST]
    if not len(few) or few.dtype == torch.uint8 or not torch.equal(few, few.round()):
        return
    x = examples.x.flatten(1)
    rows = torch.cat([x.argmax(0), x.argmin(0)]).unique()
    rows = rows[x[rows].amax(1).argsort(descending=True)][:MOST]
    inputs = examples.take(rows if len(rows) > 1 else rows.repeat(2))[0]
    try:
        with torch.no_grad():
            network(network.start.voted, network.start.floats, inputs)
    except Exception as error:
        raise ModelError(
            f"the network fails on examples of {name} ({reason(error)}), whose inputs are whole numbers from "
            f"{float(x.min()):g} to {float(x.max()):g}: an embedding needs a row for each of them; give it as many as "
            "the largest plus one, or correct the inputs"
        ) from error


def _check_repeatable(network: Network, parameters: Mapping[str, Tensor], x: Tensor) -> None:
    """Refuse random numbers that do not follow from the run's seed."""
    found = []
    with torch.random.fork_rng(devices=[x.device] if x.is_cuda else []):
        for seed in (1, 2):
            torch.manual_seed(seed)
            with KeyedDropout():
                found.append(functional_call(network._batch, dict(parameters), (x,)))
    first, again = found
    if not torch.allclose(first, again, rtol=1e-3, atol=1e-3, equal_nan=True):
        raise ModelError(
            "the forward pass draws random numbers that do not follow from the run's seed, so no run would repeat: use "
            "nn.Dropout or F.dropout, or draw nothing"
        )


def _check_buffers(network: Network, before: Mapping[str, Tensor]) -> None:
    """Refuse a forward pass that keeps numbers for the next one: clients would share them."""
    now = dict(network._batch.named_buffers())
    if changed := [name for name in before if name in now and not torch.equal(before[name], now[name])]:
        raise ModelError(
            f"the forward pass changes {', '.join(changed)}, which clients would share and no round would send: make "
            "it a constant, or leave it out (spectral_norm: call torch.nn.utils.parametrize.remove_parametrizations)"
        )


def _check_norms(network: Network, path: list[str]) -> None:
    norms = [name for name, layer in network._batch.named_modules() if isinstance(layer, StaticBatchNorm)]
    if twice := [name for name in norms if path.count(name) > 2]:  # once in training mode and once in evaluation
        raise ModelError(
            f"batch norm {', '.join(twice)} runs more than once in a forward pass, expected once: its statistics "
            "are of one place; use a separate batch norm in every place"
        )


def _check_outputs(y: Any, shape: Sequence[int], classes: int, task: Task) -> None:
    if isinstance(y, tuple | list | dict):
        raise ModelError(
            f"the network gives {len(y)} outputs as a {type(y).__name__} for inputs of shape {tuple(shape)}, expected "
            f"one tensor ({classes},): return one of them from forward, or wrap the network in a module that does"
        )
    if not isinstance(y, Tensor) or y.shape != (2, classes):
        got = f"outputs of shape {tuple(y.shape[1:])}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
        one, many = ("target", "targets") if task == "regression" else ("class", "classes")
        raise ModelError(
            f"the network gives {got} for one input of shape {tuple(shape)}, "
            f"but the data has {classes} {one if classes == 1 else many}: expected ({classes},); "
            "change the network's last layer"
        )


def _stackable(network: Network, x_KB: Tensor, y_KB: Tensor, noise_K2: Tensor) -> bool:
    """Whether vmap can run network and loss. Recurrent layers and control flow by data cannot be stacked."""

    def loss(voted_D: Tensor, floats_F: Tensor, x_B: Tensor, y_B: Tensor, noise: Tensor) -> Tensor:
        with network.dropping(noise):
            return network.loss(voted_D, floats_F, x_B, y_B)

    start = network.start.voted.expand(2, -1), network.start.floats.expand(2, -1)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            vmap(loss)(*start, x_KB, y_KB, noise_K2)
    except Exception:
        return False
    return True
