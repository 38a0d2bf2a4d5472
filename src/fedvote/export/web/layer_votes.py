"""The votes of each layer, packed for a page that draws them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from fedvote.export.packing import BITS, pack_votes
from fedvote.network.deployed import Deployed

MOST = 2**18  # votes of one layer in a page


@dataclass(frozen=True)
class LayerVotes:
    """The votes of one layer, packed as in exported files. Of a large layer, those of its first outputs."""

    name: str
    shape: tuple[int, int, int, int]  # outputs that are here, inputs, rows, columns
    outputs: int  # of the whole layer
    counts: tuple[int, int, int]  # of +1, 0 and -1, in the whole layer
    binary: bool  # packed as bits; else as trits
    votes: str  # in base 64

    @property
    def count(self) -> int:
        return sum(self.counts)

    @property
    def sides(self) -> str:
        _, inputs, rows, columns = self.shape
        sides = [self.outputs, inputs, *([rows, columns] if rows * columns > 1 else [])]
        return " \N{MULTIPLICATION SIGN} ".join(map(str, sides))


def layer_votes(network: Deployed) -> list[LayerVotes]:
    """The votes of each layer that has some."""
    return [_packed(name, weight, network.shape) for name, weight in _voted(network)]


def _voted(network: Deployed) -> Iterator[tuple[str, Tensor]]:
    if network.votes == 0:  # a network of floats
        return
    for name, weight in network.network.named_parameters():
        if weight.ndim > 1 and weight.any() and torch.isin(weight, torch.tensor([-1.0, 0.0, 1.0])).all():
            yield name.removesuffix(".weight"), weight.detach()


def _packed(name: str, weight: Tensor, inputs: Sequence[int]) -> LayerVotes:
    shown = weight[: max(1, MOST // weight[0].numel())]
    packed, table = pack_votes(shown.cpu().numpy().astype("int8"))
    plus, none, minus = (int((weight == value).sum()) for value in (1, 0, -1))
    shape = (len(shown), *_axes(weight.shape[1:], inputs))
    text = base64.b64encode(packed.tobytes()).decode()
    return LayerVotes(name, shape, len(weight), (plus, none, minus), table is BITS, text)


def _axes(axes: Sequence[int], inputs: Sequence[int]) -> tuple[int, int, int]:
    """Inputs, rows and columns of one output's votes. The first layer of an MLP sees the image itself."""
    if len(axes) == 1 and len(inputs) == 3 and axes[0] == prod(inputs):
        return inputs[0], inputs[1], inputs[2]
    rows, columns = (1, 1, *axes[1:])[-2:] if len(axes) > 1 else (1, 1)
    return prod(axes) // (rows * columns), rows, columns
