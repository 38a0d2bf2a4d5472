"""A network's trial before the first round: on random inputs of the data's shape, alone and as a stack of clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedvote.core import Task
from fedvote.errors import ModelError, reason
from fedvote.network.dropout import KeyedDropout
from fedvote.network.static_batch_norm import StaticBatchNorm
from fedvote.network.voted_weights import trial_inputs

if TYPE_CHECKING:
    from fedvote.network.network import Network


@dataclass(frozen=True)
class Trial:
    stackable: bool  # whether a stack of clients can share one call
    dropout: bool  # whether training draws dropout masks


def try_out(network: Network, shape: Sequence[int], classes: int, task: Task = "classification") -> Trial:
    """Run a copy of a network that nobody else uses. A failure is a ModelError that names the layer."""
    path: list[str] = []
    for name, layer in (*network._tracking.named_modules(), *network._batch.named_modules()):
        layer.register_forward_pre_hook(lambda _, __, name=name: path.append(name))
    x = trial_inputs(4, shape).to(network.start.voted.device).view(2, 2, *shape)
    start, noise = network.start, torch.tensor([[1, 2], [3, 4]], dtype=torch.int32, device=x.device)
    parameters = network._parameters(start.voted, start.floats)
    training, evaluating = KeyedDropout(), KeyedDropout()
    try:
        with training:
            network.calibrate(start, x[0])
            path.clear()
            y: Any = functional_call(network._batch, parameters, (x[0],))
        with evaluating:
            network._tracking.eval()
            functional_call(network._tracking, parameters, (x[0],))
    except ModelError:
        raise
    except Exception as error:
        where = f"layer {path[-1]!r}" if path and path[-1] else "its forward"
        raise ModelError(f"the network fails at {where} on inputs of shape {tuple(shape)}: {reason(error)}") from error
    if evaluating.active:
        raise ModelError(
            "the forward pass calls dropout in evaluation as well, which would make the deployed network random: pass "
            "training=self.training (dropout_p=p if self.training else 0.0 for attention), or use nn.Dropout"
        )
    _check_norms(network, path)
    _check_outputs(y, shape, classes, task)
    _check_repeatable(network, parameters, x[0])
    network.dropout = training.active > 0
    return Trial(_stackable(network, x, noise), network.dropout)


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
        raise ModelError(
            f"the network gives {got} for one input of shape {tuple(shape)}, "
            f"but the data has {classes} {'targets' if task == 'regression' else 'classes'}: expected ({classes},); "
            "change the network's last layer"
        )


def _stackable(network: Network, x_KB: Tensor, noise_K2: Tensor) -> bool:
    """Whether vmap can run the network. Recurrent layers and control flow that depends on data cannot be stacked."""

    def outputs(voted_D: Tensor, floats_F: Tensor, x_B: Tensor, noise: Tensor) -> Tensor:
        with network.dropping(noise):
            return network(voted_D, floats_F, x_B)

    start = network.start.voted.expand(2, -1), network.start.floats.expand(2, -1)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            vmap(outputs)(*start, x_KB, noise_K2)
    except Exception:
        return False
    return True
