"""The cost of a forward pass with float, binary and ternary weights, by the paper's cost model (Table III).

A vote times an activation is the activation or its negative. A layer of votes therefore adds and subtracts where a
float layer multiplies and adds. The model counts operations and prices them. It measures nothing: a processor that
multiplies as fast as it adds gains nothing. `fedvote bench infer` measures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.flop_counter import FlopCounterMode

from fedvote.errors import ConfigError, ModelError
from fedvote.network.network import Network
from fedvote.network.trial import trial_inputs
from fedvote.network.voted_weights import VOTABLE

PICOJOULES_ADD, PICOJOULES_MULTIPLY = 0.9, 3.7  # 32-bit floats in 45 nm, as in the paper
BITS = {"float": 32.0, "binary": 1.0, "ternary": 1.6}  # per weight in a file; a byte holds five ternary weights


@dataclass(frozen=True)
class Cost:
    """The cost of one input."""

    weights: str  # float, binary or ternary
    additions: int
    multiplications: int
    nbytes: int  # of all weights; a weight kept float takes four

    @property
    def millijoules(self) -> float:
        return 1e-9 * (PICOJOULES_ADD * self.additions + PICOJOULES_MULTIPLY * self.multiplications)

    def row(self, inputs: int = 1) -> dict[str, Any]:
        """A table row with the cost of this many inputs."""
        return {
            "weights": self.weights,
            "additions": float(inputs * self.additions),
            "multiplications": float(inputs * self.multiplications),
            "millijoules": inputs * self.millijoules,
            "megabytes": self.nbytes / 1e6,
        }


def parse_shape(text: str) -> tuple[int, ...]:
    """3x32x32 -> (3, 32, 32)"""
    sides = text.split("x")
    if not all(side.isdecimal() and int(side) for side in sides):
        raise ConfigError(f"the shape is {text!r}, expected whole numbers above 0 as in 3x32x32")
    return tuple(map(int, sides))


def costs(module: nn.Module, shape: Sequence[int], classes: int, keep_float: Sequence[str] | None = None) -> list[Cost]:
    """The costs with float, binary and ternary weights. Ternary additions are an upper bound: a vote of 0 needs none.

    Products outside layers, as in attention, count as float products for all kinds of weights. Batch norm costs one
    addition an output, and with votes also one multiplication, since its scale cannot be folded into votes.
    """
    network = Network(module, keep_float=keep_float, shape=shape)
    with _attention_as_products():
        network.check(shape, classes)
        layers = _layers(network, shape)
    return [_cost(kind, network, layers) for kind in BITS]


@contextmanager
def _attention_as_products() -> Iterator[None]:
    """Run attention as separate products, which can be counted, instead of one fused kernel."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with sdpa_kernel(SDPBackend.MATH):
            yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


@dataclass(frozen=True)
class _Layer:
    voted: bool
    norm: bool
    bias: bool
    products: int  # weight times activation
    outputs: int


def _cost(kind: str, network: Network, layers: Sequence[_Layer]) -> Cost:
    additions = multiplications = 0
    for layer in layers:
        if layer.norm:
            additions += layer.outputs
            multiplications += layer.outputs if kind != "float" else 0
            continue
        # y_j = b_j + sum_i w_ij x_i: one addition less than products, and one more for a bias
        additions += layer.products - (0 if layer.bias else layer.outputs)
        multiplications += 0 if layer.voted and kind != "float" else layer.products
    return Cost(kind, additions, multiplications, math.ceil(network.D * BITS[kind] / 8) + 4 * network.F)


def _layers(network: Network, shape: Sequence[int]) -> list[_Layer]:
    """All layers with weights and all batch norms, then one entry for the products outside layers."""
    x = trial_inputs(2, shape)
    whole = nn.Sequential(network.module(network.start, network.calibrate(network.start, x)))  # so that all have names
    weights = dict(whole.named_parameters(remove_duplicate=False))
    voted = {id(weights[f"0.{slot.name}"]) for slot in network.voted}  # several layers may share one
    outputs: Counter[str] = Counter()
    counted = {name: layer for name, layer in whole.named_modules() if isinstance(layer, (*VOTABLE, _BatchNorm))}
    for name, layer in counted.items():
        layer.register_forward_hook(lambda _, __, y, name=name: outputs.update({name: y.numel()}))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        whole(x[:1])
    _refuse_uncalled(name for name, layer in counted.items() if id(layer.weight) in voted and name not in outputs)
    operations = counter.get_flop_counts()
    layers = [
        _Layer(
            voted=id(getattr(layer, "weight", None)) in voted,
            norm=isinstance(layer, _BatchNorm),
            bias=layer.bias is not None,
            products=sum(operations.get(f"{type(whole).__name__}.{name}", {}).values()) // 2,
            outputs=outputs[name],
        )
        for name, layer in counted.items()
    ]
    others = counter.get_total_flops() // 2 - sum(layer.products for layer in layers)
    return [*layers, _Layer(voted=False, norm=False, bias=True, products=others, outputs=0)]


def _refuse_uncalled(names: Iterable[str]) -> None:
    if found := ", ".join(name.removeprefix("0.") for name in names):
        raise ModelError(
            f"{found} is voted on but never called, so its operations cannot be counted (nn.MultiheadAttention reads "
            "the weights without calling the layer): call it as a layer, or name it in keep_float"
        )
