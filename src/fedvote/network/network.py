"""Any nn.Module as a function of two flat vectors: voted weights and float weights.

Clients vote on the weights of all convolutions and linear layers except those kept float (Section VI of the paper: the
last layer stays float, is initialised from the shared seed and is not trained). Batch norm is static: it normalises by
the batch, or by statistics that `calibrate` measured.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.flop_counter import FlopCounterMode

from fedvote.core import State, Task, Weights
from fedvote.errors import ModelError, reason
from fedvote.network.products import as_products
from fedvote.network.static_batch_norm import StaticBatchNorm, with_recording_norms, with_static_norms
from fedvote.network.validate import problems, refuse
from fedvote.network.voted_weights import VOTABLE, votable_weights
from fedvote.randomness import Key

Loss = Callable[[Tensor, Tensor], Tensor]
Vector = Tensor | Sequence[Tensor]
"""Voted or float weights: one flat vector, or its parts in the order of their slots."""


@dataclass(frozen=True)
class Slot:
    """The place of one parameter in its flat vector."""

    name: str
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def stop(self) -> int:
        return self.start + self.size


class Network:
    """A module as the function (voted, floats, inputs) -> outputs. The module given is copied, never changed."""

    def __init__(
        self,
        module: nn.Module,
        seed: int = 0,
        keep_float: Sequence[str] | None = None,
        loss: Loss = F.cross_entropy,
    ):
        """`keep_float`: names of layers (with * and ?) whose weights are not voted on; None: the last linear layer."""
        refuse(problems(module))
        self._tracking = with_recording_norms(module)
        self._batch = with_static_norms(self._tracking)
        self._loss = loss
        self._half = False
        self.compiled = False
        self._operations: dict[torch.Size, int] = {}
        voted = votable_weights(self._batch, keep_float)
        if not voted:
            raise ModelError(
                f"{type(module).__name__} has no weights to vote on: expected at least one convolution or linear layer "
                "besides those kept float; add one, or pass keep_float=()"
            )
        parameters = dict(self._batch.named_parameters())
        self.voted = _slots({name: parameters[name] for name in parameters if name in voted})
        self.floats = _slots({name: parameters[name] for name in parameters if name not in voted})
        self.D = self.voted[-1].stop
        self.F = self.floats[-1].stop if self.floats else 0
        self.start = self._draw(Key(seed))

    def to(self, device: torch.device | str, half: bool = False, compiled: bool = False) -> Network:
        """A copy on the device. `half`: convolutions and products in bfloat16, everything else in float32.

        `compiled`: training on a GPU runs kernels compiled for this network. Compiling takes up to half a minute.
        """
        other = copy.deepcopy(self)
        other._half, other.compiled = half, compiled
        other._batch.to(device)
        other._tracking.to(device)
        other.start = Weights(self.start.voted.to(device), self.start.floats.to(device))
        return other

    def starts_as(self, other: Network) -> bool:
        """Whether both networks have the same layers and the same initial weights. Devices may differ."""
        mine, theirs = ((n.fingerprint, n.start.voted.cpu(), n.start.floats.cpu()) for n in (self, other))
        return mine[0] == theirs[0] and all(map(torch.equal, mine[1:], theirs[1:]))

    def as_products(self) -> Network:
        """The same function with its layers as matrix products (products.py says why)."""
        other = copy.copy(self)
        other._batch = as_products(self._batch, self._half)
        return other

    @cached_property
    def fingerprint(self) -> bytes:
        """Eight bytes: a hash of the names and shapes of all layers."""
        layout = repr([(slot.name, slot.shape) for slot in (*self.voted, *self.floats)])
        return hashlib.blake2b(layout.encode(), digest_size=8).digest()

    @property
    def norms(self) -> dict[str, torch.Size]:
        """Names and shapes of the batch-norm statistics."""
        return {name: buffer.shape for name, buffer in self._norm_buffers().items()}

    def standardise(self, voted_D: Tensor) -> Tensor:
        """Divide each layer's weights by their standard deviation."""
        parts = [voted_D[slot.start : slot.stop] for slot in self.voted]
        return torch.cat([part / part.std(correction=0).clamp_min(1e-12) for part in parts])

    def __call__(self, voted_D: Vector, floats_F: Vector, x_B: Tensor) -> Tensor:
        """Outputs for one batch. Batch norm uses the statistics of that batch."""
        return self._run(self._batch, self._parameters(voted_D, floats_F), x_B)

    @property
    def sizes(self) -> tuple[list[int], list[int]]:
        """Sizes of the voted parameters and of the float parameters."""
        return [slot.size for slot in self.voted], [slot.size for slot in self.floats]

    def loss(self, voted_D: Vector, floats_F: Vector, x_B: Tensor, y_B: Tensor) -> Tensor:
        """Loss of one client on one batch."""
        return self._loss(self(voted_D, floats_F, x_B), y_B)

    def operations(self, x_B: Tensor) -> int:
        """Number of multiplications and additions in a forward pass on a batch of this shape."""
        if x_B.shape not in self._operations:
            few = x_B[: min(2, len(x_B))]
            with FlopCounterMode(display=False) as counter, torch.no_grad():
                self(self.start.voted, self.start.floats, few)
            self._operations[x_B.shape] = int(counter.get_total_flops()) * len(x_B) // len(few)
        return self._operations[x_B.shape]

    def calibrate(self, weights: Weights, x: Tensor) -> State:
        """Measure batch-norm statistics on `x`. With them the network can take one input at a time."""
        statistics = {name: torch.zeros_like(buffer) for name, buffer in self._norm_buffers().items()}
        self._tracking.train()
        self._run(self._tracking, {**self._parameters(weights.voted, weights.floats), **statistics}, x)
        return statistics

    def calibrated(self, weights: Weights, statistics: State, x_B: Tensor) -> Tensor:
        """Outputs for one batch. Batch norm uses `statistics`, not the batch."""
        self._tracking.eval()
        return self._run(self._tracking, {**self._parameters(weights.voted, weights.floats), **statistics}, x_B)

    def module(self, weights: Weights, statistics: State) -> nn.Module:
        """An ordinary nn.Module in evaluation mode with these weights and batch-norm statistics."""
        module = copy.deepcopy(self._tracking)
        parameters = self._parameters(weights.voted.float(), weights.floats)
        module.load_state_dict({**parameters, **statistics}, strict=False)
        return module.eval().requires_grad_(False)

    def check(self, shape: Sequence[int], classes: int, task: Task = "classification") -> None:
        """Run one client and a stack of two on random inputs. A failure is a ModelError that names the layer."""
        path: list[str] = []
        trial = copy.deepcopy(self)
        for name, layer in (*trial._tracking.named_modules(), *trial._batch.named_modules()):
            layer.register_forward_pre_hook(lambda _, __, name=name: path.append(name))
        x = torch.rand((2, 2, *shape), generator=Key(0).torch("trial")).to(self.start.voted.device)
        stack = self.start.voted.expand(2, -1), self.start.floats.expand(2, -1)
        try:
            trial.calibrate(self.start, x[0])
            path.clear()
            y: object = vmap(trial)(*stack, x)
        except Exception as error:
            where = f"layer {path[-1]!r}" if path and path[-1] else "its forward"
            raise ModelError(
                f"the network fails at {where} on inputs of shape {tuple(shape)}: {reason(error)}"
            ) from error
        norms = [name for name, layer in trial._batch.named_modules() if isinstance(layer, StaticBatchNorm)]
        if twice := [name for name in norms if path.count(name) > 1]:
            raise ModelError(
                f"batch norm {', '.join(twice)} runs more than once in a forward pass, expected once: its statistics "
                "are of one place; use a separate batch norm in every place"
            )
        if not isinstance(y, Tensor) or y.shape != (2, 2, classes):
            got = f"outputs of shape {tuple(y.shape[2:])}" if isinstance(y, Tensor) else f"a {type(y).__name__}"
            raise ModelError(
                f"the network gives {got} for one input of shape {tuple(shape)}, "
                f"but the data has {classes} {'targets' if task == 'regression' else 'classes'}: expected "
                f"({classes},); change the network's last layer"
            )

    def _draw(self, key: Key) -> Weights:
        """Initial weights: Kaiming from this key alone, biases zero, other parameters as the module has them."""
        generator = key.torch("init")
        for layer in self._batch.modules():
            if isinstance(layer, VOTABLE):
                nn.init.kaiming_normal_(layer.weight, nonlinearity="relu", generator=generator)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)
        parameters = dict(self._batch.named_parameters())
        return Weights(_flatten(parameters, self.voted), _flatten(parameters, self.floats))

    def _run(self, module: nn.Module, tensors: dict[str, Tensor], x_B: Tensor) -> Tensor:
        with torch.autocast(x_B.device.type, torch.bfloat16, enabled=self._half, cache_enabled=False):
            y: Tensor = functional_call(module, tensors, (x_B,))
        return y.float() if self._half else y

    def _parameters(self, voted_D: Vector, floats_F: Vector) -> dict[str, Tensor]:
        # split instead of slices: the gradient of each slice would be as large as the whole vector
        parts = [
            part
            for vector, sizes in zip((voted_D, floats_F), self.sizes, strict=True)
            for part in (vector.split(sizes) if isinstance(vector, Tensor) else vector)
        ]
        return {s.name: part.view(s.shape) for s, part in zip((*self.voted, *self.floats), parts, strict=False)}

    def _norm_buffers(self) -> dict[str, Tensor]:
        norms = [(name, m) for name, m in self._tracking.named_modules() if isinstance(m, _BatchNorm)]
        return {f"{name}.{b}": buffer for name, norm in norms for b, buffer in norm.named_buffers(recurse=False)}


def channels_last(x: Tensor) -> Tensor:
    """Images (..., channels, height, width), contiguous by pixel: the layout that tensor cores prefer."""
    x = x.movedim(-3, -1).contiguous()
    *front, height, width, channels = x.shape
    # explicit strides: with one channel, torch could take either layout
    strides = (*x.stride()[:-3], 1, width * channels, channels)
    return x.as_strided((*front, channels, height, width), strides)


def _slots(parameters: dict[str, nn.Parameter]) -> tuple[Slot, ...]:
    slots: list[Slot] = []
    for name, parameter in parameters.items():
        slots.append(Slot(name, tuple(parameter.shape), slots[-1].stop if slots else 0))
    return tuple(slots)


def _flatten(parameters: dict[str, nn.Parameter], slots: tuple[Slot, ...]) -> Tensor:
    return torch.cat([torch.empty(0), *(parameters[slot.name].detach().flatten() for slot in slots)])
