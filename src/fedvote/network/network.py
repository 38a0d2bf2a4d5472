"""Any nn.Module as a function of two flat vectors: voted weights and float weights.

Clients vote on the weights of all convolutions and linear layers except those kept float (Section VI of the paper: the
last layer stays float, is initialised from the shared seed and is not trained). Batch norm is static: it normalises by
the batch, or by statistics that `calibrate` measured, unless the user froze it. Dropout follows from the run's key
(dropout.py).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.flop_counter import FlopCounterMode

from fedvote.core import State, Task, Weights
from fedvote.network.dropout import KeyedDropout
from fedvote.network.products import as_products
from fedvote.network.quick_max_pool import QuickMaxPool
from fedvote.network.slots import Vector, fingerprint_of, flatten, length, slots_of, standardised, unflatten
from fedvote.network.start import Start, draw, warn_of_rounding
from fedvote.network.static_batch_norm import (
    batch_norms,
    frozen_norms,
    has_affine_norms,
    norm_statistics,
    with_recording_norms,
    with_static_norms,
)
from fedvote.network.trial import Trial, try_out
from fedvote.network.validate import problems, refuse, uncompiled
from fedvote.network.voted_weights import frozen_weights, votable_weights, without_votable
from fedvote.randomness import Key

Loss = Callable[[Tensor, Tensor], Tensor]


class Network:
    """A module as the function (voted, floats, inputs) -> outputs. The module given is copied, never changed."""

    def __init__(
        self,
        module: nn.Module,
        seed: int = 0,
        keep_float: Sequence[str] | None = None,
        loss: Loss = F.cross_entropy,
        *,
        vote: Sequence[str] = (),
        start: Start = "seed",
        shape: Sequence[int] | None = None,
        votes: bool = True,
        voted: Sequence[str] | None = None,
    ):
        """`keep_float`: names of layers (with * and ?) whose weights are not voted on; None: the last layer.

        `vote`: names of further weights to vote on, such as `attention.in_proj_weight`. `start`: the seed draws the
        weights, and batch norm has no parameters; or they are those of the module. `shape`: of one input, to find the
        last layer by a run; without it, it is the last linear layer registered. `votes`: whether the method votes; if
        not, any network will do. `voted`: the names of exactly the voted weights, if they are known.
        """
        module = uncompiled(module)
        refuse(problems(module, votes))
        self.brings_weights = start == "given"  # whether training starts from the weights of the module
        if self.brings_weights:
            warn_of_rounding(module)
        self.drops_norms = not self.brings_weights and has_affine_norms(module)  # whether scales and shifts are lost
        self._tracking = with_recording_norms(module, given=self.brings_weights)
        norms = batch_norms(self._tracking)
        self.kept_norms = frozenset(name for name, norm in norms.items() if not norm.training)  # with own statistics
        frozen = frozen_norms(module) if self.brings_weights else {}
        self.unkept_norms = [name for name, norm in frozen.items() if norm.training and norm.affine]  # in training mode
        self._batch = self._training(with_static_norms(self._tracking))
        self.frozen = frozen_weights(module, self._batch)  # by the user; none if all are: such a network only predicts
        self._loss = loss
        self._half = False
        self.compiled = False
        self.trial = Trial()
        self._noise: Tensor | None = None  # of the call in progress
        self._operations: dict[torch.Size, int] = {}
        names: Collection[str] | None = voted
        if names is None:
            tried = copy.deepcopy(self._batch)  # a run may leave outputs in attributes, or change buffers
            names = votable_weights(tried, keep_float, vote, shape, unclear=not votes, frozen=self.frozen)
            names = names or without_votable(self._batch, type(module).__name__, votes, self.frozen, keep_float)
        parameters = dict(self._batch.named_parameters())
        self.voted = slots_of({name: p for name, p in parameters.items() if name in names})
        self.floats = slots_of({name: p for name, p in parameters.items() if name not in names})
        self.D, self.F = length(self.voted), length(self.floats)
        # weights that clients cannot make from the seed
        self.given = list(parameters) if self.brings_weights else draw(self._batch, Key(seed))
        parameters = dict(self._batch.named_parameters())
        self.start = Weights(flatten(parameters, self.voted), flatten(parameters, self.floats))

    @property
    def trains(self) -> Tensor | None:
        """(F,) whether each float weight trains; None if the user froze none."""
        if not self.frozen:
            return None
        return torch.cat([self.start.floats.new_full((s.size,), s.name not in self.frozen) for s in self.floats]).bool()

    @property
    def trainable(self) -> int:
        """How many weights train: all but those that the user froze."""
        return self.D + self.F - sum(slot.size for slot in self.floats if slot.name in self.frozen)

    @property
    def zero_floats(self) -> list[str]:
        """Float parameters, biases apart, that start at zero: if they stay there, nothing before them can learn."""
        floats = self.start.floats
        return [s.name for s in self.floats if not s.name.endswith("bias") and not floats[s.start : s.stop].any()]

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

    def with_floats(self, floats_F: Tensor) -> Network:
        """This network, if it starts with these float weights; otherwise a copy that does."""
        if torch.equal(self.start.floats, floats_F):
            return self
        other = copy.copy(self)
        other.start = Weights(self.start.voted, floats_F)
        return other

    @contextmanager
    def dropping(self, noise: Tensor) -> Iterator[None]:
        """Within it, dropout masks follow from these bits; elsewhere nothing is dropped."""
        self._noise = noise
        try:
            yield
        finally:
            self._noise = None

    def as_products(self) -> Network:
        """The same function with its layers as matrix products (products.py says why)."""
        other = copy.copy(self)
        other._batch = as_products(self._batch, self._half)
        return other

    @cached_property
    def fingerprint(self) -> bytes:
        """Eight bytes: a hash of the names and shapes of all layers, and of all tensors that no round changes.

        Those are kept batch-norm statistics, and the user's own buffers. They are in no message, so all machines need
        the same.
        """
        return fingerprint_of((*self.voted, *self.floats), self.kept_statistics | self.constants)

    @property
    def layout(self) -> bytes:
        """Eight bytes: a hash of the names and shapes of all layers."""
        return fingerprint_of((*self.voted, *self.floats))

    @property
    def norms(self) -> dict[str, torch.Size]:
        """Names and shapes of the batch-norm statistics that are measured."""
        return {name: buffer.shape for name, buffer in self._statistics().items()}

    @property
    def kept_statistics(self) -> dict[str, Tensor]:
        """The running statistics that batch norms keep as the user gave them."""
        return self._statistics(kept=True)

    @property
    def constants(self) -> dict[str, Tensor]:
        """The buffers of a state dict that are not batch norms': the user gave them, and no round changes them."""
        saved = self._tracking.state_dict().keys() - norm_statistics(batch_norms(self._tracking)).keys()
        return {name: buffer for name, buffer in self._tracking.named_buffers() if name in saved}

    def standardise(self, voted_D: Tensor) -> Tensor:
        """Divide each layer's weights by their standard deviation."""
        return standardised(voted_D, self.voted)

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
        statistics = {name: torch.zeros_like(buffer) for name, buffer in self._statistics().items()}
        self._training(self._tracking)
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
        """Try the network on random inputs: see trial.py."""
        self.trial = try_out(copy.deepcopy(self), shape, classes, task)

    def _run(self, module: nn.Module, tensors: dict[str, Tensor], x_B: Tensor) -> Tensor:
        keyed = KeyedDropout(self._noise) if self.trial.dropout else nullcontext()
        pools = nullcontext() if torch.is_grad_enabled() or x_B.is_cuda else QuickMaxPool()
        x_B = x_B.clone() if self.trial.alters_input else x_B
        with keyed, pools, torch.autocast(x_B.device.type, torch.bfloat16, enabled=self._half, cache_enabled=False):
            y: Tensor = functional_call(module, tensors, (x_B,))
        return y.float() if self._half else y

    def _training(self, module: nn.Module) -> nn.Module:
        """Put a module into training mode, apart from the batch norms that keep their statistics."""
        module.train()
        for name in self.kept_norms:
            module.get_submodule(name).eval()
        return module

    def _statistics(self, kept: bool = False) -> dict[str, Tensor]:
        norms = batch_norms(self._tracking)
        return norm_statistics({name: norm for name, norm in norms.items() if (name in self.kept_norms) is kept})

    def _parameters(self, voted_D: Vector, floats_F: Vector) -> dict[str, Tensor]:
        parameters = unflatten(voted_D, self.voted) | unflatten(floats_F, self.floats)
        return parameters | {name: parameters[name].detach() for name in self.frozen & parameters.keys()}
