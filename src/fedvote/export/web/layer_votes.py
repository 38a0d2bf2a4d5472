"""The votes of each layer, packed for a page that draws them."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from fedvote.export.network_file import Deployed
from fedvote.export.packing import BITS, pack_votes

MOST = 2**18  # votes of one layer in a page


def layer_votes(network: Deployed) -> list[dict[str, Any]]:
    """Name, shape and packed votes of each layer of votes. Of a large layer, those of the first outputs."""
    return [_packed(name, weight, network.shape) for name, weight in _voted(network)]


def _voted(network: Deployed) -> Iterator[tuple[str, Tensor]]:
    if network.votes == 0:  # a network of floats
        return
    for name, weight in network.network.named_parameters():
        if weight.ndim > 1 and weight.any() and torch.isin(weight, torch.tensor([-1.0, 0.0, 1.0])).all():
            yield name.removesuffix(".weight"), weight.detach()


def _packed(name: str, weight: Tensor, inputs: Sequence[int]) -> dict[str, Any]:
    """(outputs, inputs, rows, columns) of a layer's votes, from whatever axes it has."""
    shown = weight[: max(1, MOST // weight[0].numel())]
    packed, table = pack_votes(shown.cpu().numpy().astype("int8"))
    return {
        "name": name,
        "shape": [len(shown), *_axes(weight.shape[1:], inputs)],
        "outputs": len(weight),
        "counts": [int((weight == value).sum()) for value in (1, 0, -1)],
        "binary": table is BITS,
        "votes": base64.b64encode(packed.tobytes()).decode(),
    }


def _axes(axes: Sequence[int], inputs: Sequence[int]) -> tuple[int, int, int]:
    """Inputs, rows and columns of one output's votes. The first layer of an MLP sees the image itself."""
    if len(axes) == 1 and len(inputs) == 3 and axes[0] == prod(inputs):
        return inputs[0], inputs[1], inputs[2]
    rows, columns = (1, 1, *axes[1:])[-2:] if len(axes) > 1 else (1, 1)
    return prod(axes) // (rows * columns), rows, columns
