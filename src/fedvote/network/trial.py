"""A network's trial before the first round: on random inputs of the data's shape, alone and as a stack of clients."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel

from fedvote.core import Dataset, Examples, Task
from fedvote.errors import Doubt, ModelError, reason, some
from fedvote.network.dropout import KeyedDropout
from fedvote.network.trial_checks import (
    advice,
    check_answers,
    check_buffers,
    check_norms,
    check_outputs,
    check_repeatable,
)
from fedvote.randomness import Key
from fedvote.tasks.losses import BCE

if TYPE_CHECKING:
    from fedvote.network.network import Network


MOST = 256  # examples to try


@dataclass(frozen=True)
class Trial:
    """What a network's trial found; the defaults are those of a network that was not tried."""

    stackable: bool = True  # whether a stack of clients can share one call, by vmap
    dropout: bool = False  # whether training draws dropout masks
    alters_input: bool = False  # whether forward changes its input in place
    unused: frozenset[str] = frozenset()  # parameters without a gradient
    idle: frozenset[str] = frozenset()  # parameters whose gradient is zero because a float weight behind them is


def trial_inputs(count: int, shape: Sequence[int]) -> Tensor:
    """Random inputs of the data's shape."""
    return torch.rand((count, *shape), generator=Key(0).torch("trial"))


def try_out(network: Network, shape: Sequence[int], classes: int, task: Task = "classification") -> Trial:
    """Run a copy of a network that nobody else uses. A failure is a ModelError that names the layer."""
    x = trial_inputs(4, shape).to(network.start.voted.device).view(2, 2, *shape)
    start, noise = network.start, torch.tensor([[1, 2], [3, 4]], dtype=torch.int32, device=x.device)
    weights = network._parameters(start.voted, start.floats)
    parameters = {name: weight.detach().requires_grad_() for name, weight in weights.items()}
    buffers = {name: buffer.clone() for name, buffer in network._batch.named_buffers()}
    given = x[0].clone()
    y, answers, path, dropout = _run(network, parameters, given, shape)
    check_norms(network, path)
    check_outputs(y, shape, classes, task)
    if isinstance(network._loss, BCE) and type(y.grad_fn).__name__.startswith("Sigmoid"):
        warnings.warn(
            "the network ends in a sigmoid, but bce and its metrics expect the numbers before it: leave it out",
            Doubt,
            stacklevel=5,
        )
    check_buffers(network, buffers)
    check_repeatable(network, parameters, x[0])
    check_answers(network, parameters, answers, y, x[0])
    network.trial = Trial(dropout=dropout, alters_input=not torch.equal(given, x[0]))
    targets = torch.zeros(2, 2, classes) if task != "classification" else torch.zeros(2, 2, dtype=torch.int64)
    gradients = _gradients(y, parameters)
    unused = frozenset(name for name, gradient in gradients.items() if gradient is None)
    idle = _idle(network, parameters, gradients, x[0])
    stackable = _stackable(network, x, targets.to(x.device), noise)
    return replace(network.trial, stackable=stackable, unused=unused, idle=idle)


def _run(
    network: Network, parameters: dict[str, Tensor], x_B: Tensor, shape: Sequence[int]
) -> tuple[Any, Any, list[str], bool]:
    """The outputs in training and in evaluation, the layers that ran, and whether any drops.

    Forward may change the inputs.
    """
    path: list[str] = []
    inputs: dict[str, Any] = {}  # of the last call of each layer

    def note(layer: nn.Module, given: Any, name: str) -> None:
        path.append(name)
        inputs[name] = given[0] if given else None

    for name, layer in (*network._tracking.named_modules(), *network._batch.named_modules()):
        layer.register_forward_pre_hook(partial(note, name=name))
    training, evaluating, clean_B = KeyedDropout(), KeyedDropout(), x_B.clone()
    try:
        with training, torch.enable_grad():
            network.calibrate(network.start, x_B.clone())
            path.clear()
            y: Any = functional_call(network._batch, parameters, (x_B,))
        with evaluating:
            network._tracking.eval()
            answers: Any = functional_call(network._tracking, parameters, (clean_B,))
    except ModelError:
        raise
    except Exception as error:
        where = f"layer {path[-1]!r}" if path and path[-1] else "its forward"
        raise ModelError(
            f"the network fails at {where} on inputs of shape {tuple(shape)}: {reason(error)}"
            f"{advice(network._tracking, path, shape, inputs)}"
        ) from error
    if evaluating.active:
        raise ModelError(
            "the forward pass calls dropout in evaluation as well, which would make the deployed network random: pass "
            "training=self.training (dropout_p=p if self.training else 0.0 for attention), or use nn.Dropout"
        )
    return y, answers, path, training.active > 0


def _idle(
    network: Network, parameters: Mapping[str, Tensor], gradients: Mapping[str, Tensor | None], x_B: Tensor
) -> frozenset[str]:
    """Parameters without a gradient until float weights that start at zero are something else."""
    changed = {name: torch.ones_like(parameters[name]).requires_grad_() for name in network.zero_floats}
    if not changed:
        return frozenset()
    others = {**parameters, **changed}
    with torch.enable_grad(), KeyedDropout():
        y = functional_call(network._batch, others, (x_B.clone(),))
    after = _gradients(y, others)
    return frozenset(name for name in after if _is_zero(gradients[name]) and not _is_zero(after[name]))


def _is_zero(gradient: Tensor | None) -> bool:
    return gradient is None or not gradient.any()


def _gradients(y: Tensor, parameters: Mapping[str, Tensor]) -> dict[str, Tensor | None]:
    """The gradient of each parameter, for outputs that are weighed at random: the sum of a softmax has none."""
    weights = torch.randn(y.shape, generator=Key(0).torch("trial weights")).to(y.device)
    try:
        with torch.enable_grad():  # the caller may have turned it off
            found = torch.autograd.grad((y * weights).sum(), list(parameters.values()), allow_unused=True)
    except Exception as error:
        raise ModelError(
            f"the network's gradient cannot be computed ({reason(error)}): call its layers without "
            "torch.utils.checkpoint, and change no tensor in place that a gradient needs"
        ) from error
    return dict(zip(parameters, found, strict=True))


def try_values(network: Network, data: Dataset) -> None:
    """Run whole-number inputs that are largest or smallest in some place: a token may be outside an embedding."""
    for examples, name in ((data.train, "the training data"), (data.test, "the test data")):
        _try_extremes(network, examples, name)
    if len(data.train) and data.train.x.dtype == torch.uint8:
        _warn_of_scaled_tokens(network, data.train)


def _warn_of_scaled_tokens(network: Network, examples: Examples) -> None:
    """Warn of bytes for an embedding: divided by 255, they all become row 0, or 1."""
    tables = {name: layer for name, layer in network._batch.named_modules() if isinstance(layer, nn.Embedding)}
    if not tables:
        return
    largest: dict[str, float] = {}

    def note(layer: nn.Module, given: Any, name: str) -> None:
        largest[name] = max(largest.get(name, 0.0), float(given[0].max()))

    hooks = [layer.register_forward_pre_hook(partial(note, name=name)) for name, layer in tables.items()]
    try:
        with torch.no_grad():
            rows = torch.arange(max(2, min(MOST, len(examples)))) % len(examples)
            network(network.start.voted, network.start.floats, examples.take(rows)[0])
    finally:
        for hook in hooks:
            hook.remove()
    if scaled := [name for name, row in largest.items() if row <= 1 and tables[name].num_embeddings > 2]:
        warnings.warn(
            f"the embedding {some(scaled)} gets rows 0 and 1 alone, since inputs of uint8 are divided by 255: make the "
            "data of tokens with another dtype, as x.astype(int)",
            Doubt,
            stacklevel=4,
        )


def _try_extremes(network: Network, examples: Examples, name: str) -> None:
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


def _stackable(network: Network, x_KB: Tensor, y_KB: Tensor, noise_K2: Tensor) -> bool:
    """Whether vmap can run network and loss. Recurrent layers and control flow by data cannot be stacked.

    Some layers, such as EmbeddingBag, vmap would run client by client, with a warning for each call.
    """

    def loss(voted_D: Tensor, floats_F: Tensor, x_B: Tensor, y_B: Tensor, noise: Tensor) -> Tensor:
        with network.dropping(noise):
            return network.loss(voted_D, floats_F, x_B, y_B)

    start = network.start.voted.expand(2, -1), network.start.floats.expand(2, -1)
    try:
        with sdpa_kernel(SDPBackend.MATH), warnings.catch_warnings():
            warnings.filterwarnings("error", "There is a performance drop")
            vmap(loss)(*start, x_KB, y_KB, noise_K2)
    except Exception:
        return False
    return True
