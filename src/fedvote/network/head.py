"""The last layer of a network, found by running it: the order of registration says nothing about the order of use.

Autograd remembers how the output was computed. Walking back from the output, the first layer with weights on every path
is the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from fedvote.errors import ModelError
from fedvote.network.dropout import KeyedDropout


def last_layers(module: nn.Module, layers: Mapping[str, nn.Module], x_B: Tensor) -> list[str] | None:
    """Names of the layers whose weights no other layer's weights follow; None if a run gives no tensor.

    `layers`: the layers to choose from, each with a `weight`. Layers that share a weight are named together.
    """
    leaves = {name: value.detach().clone().requires_grad_() for name, value in module.named_parameters()}
    owners: dict[int, list[str]] = {}  # the weight's id -> the layers that have it
    for name, layer in layers.items():
        owners.setdefault(id(layer.weight), []).append(name)
    names = {id(leaves[name]): owners.get(id(value), []) for name, value in module.named_parameters()}
    try:
        with torch.enable_grad(), KeyedDropout():
            y: Any = functional_call(module, leaves, (x_B.requires_grad_(),))
    except Exception:
        return None  # the trial run says why
    if not isinstance(y, Tensor):
        return None
    found: set[int] = set()
    seen, waiting = set(), [y.grad_fn] if y.grad_fn is not None else []
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        inputs = [each for each, _ in node.next_functions if each is not None]
        weights = {weight for each in inputs if (weight := _parameter(each)) is not None and names.get(weight)}
        found |= weights
        waiting += [] if weights else inputs
    return sorted({name for weight in found for name in names[weight]})


def head(module: nn.Module, layers: Mapping[str, nn.Module], x_B: Tensor) -> list[str] | None:
    """The last layer; ModelError if there are several, or if its weight is another layer's as well."""
    last = last_layers(module, layers, x_B)
    if not last:
        return last
    whole = list(module.named_parameters(remove_duplicate=False))
    shared = {name.rpartition(".")[0] for name, value in whole if value is layers[last[0]].weight}
    if len(shared) > 1 and shared >= set(last):
        others = ", ".join(sorted(shared - {last[-1]}))
        raise ModelError(
            f"the last layer, {last[-1]}, shares its weight with {others}, so which stays float is not clear: pass "
            f'keep_float=["{last[-1]}"] to keep the weight float in both, or keep_float=[] to vote on it'
        )
    if len(last) > 1:
        raise ModelError(
            f"the output comes from several last layers ({', '.join(last)}), so which stays float is not clear: name "
            f"it in keep_float, or pass keep_float={list(last)} to keep them all float, or keep_float=[] to vote on all"
        )
    return last


def _parameter(node: Any) -> int | None:
    """The id of the parameter that this node of the graph is, or is a view of."""
    while not hasattr(node, "variable"):
        if len(node.next_functions) != 1 or node.next_functions[0][0] is None:
            return None
        node = node.next_functions[0][0]
    return id(node.variable)
