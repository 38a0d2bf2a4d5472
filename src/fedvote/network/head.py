"""The last layer of a network, found by running it: the order of registration says nothing about the order of use.

Autograd remembers how the output was computed. Walking back from the output, the first layer with weights on every path
is the last one. A weight may be computed before it is used, as in scale * F.normalize(weight): then only parameters are
behind it. Behind an activation there is an output of some module, the input of the network, or a bias.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.utils.parametrize import ParametrizationList

from fedvote.errors import ModelError
from fedvote.network.dropout import KeyedDropout

COMPUTED = 30  # steps at most from a parameter to the weight that is computed from it


def last_layers(module: nn.Module, layers: Mapping[str, nn.Module], x_B: Tensor) -> list[str] | None:
    """Names of the layers whose weights no other layer's weights follow; None if a run gives no tensor.

    `layers`: the layers to choose from, each with a `weight`. Layers that share a weight are named together.
    """
    leaves = {name: value.detach().clone().requires_grad_() for name, value in module.named_parameters()}
    owners: dict[int, list[str]] = {}  # the weight's id -> the layers that have it
    for name, layer in layers.items():
        owners.setdefault(id(layer.weight), []).append(name)
    names = {id(leaves[name]): owners.get(id(value), []) for name, value in module.named_parameters()}
    biases = {id(leaves[f"{name}.bias"]) for name in layers if f"{name}.bias" in leaves}
    activations: set[Any] = set()  # nodes of the graph
    hooks = [
        each.register_forward_hook(lambda _, __, y: activations.update(_nodes(y)))
        for each in module.modules()
        if not isinstance(each, ParametrizationList)
    ]
    x_B.requires_grad_()
    try:
        with torch.enable_grad(), KeyedDropout():
            y: Any = functional_call(module, leaves, (x_B.clone(),))
    except Exception:
        return None  # the trial run says why
    finally:
        for hook in hooks:
            hook.remove()
    if not isinstance(y, Tensor) or y.grad_fn is None:
        return None
    found: set[str] = set()
    seen, waiting = set(), [y.grad_fn]
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        inputs = [each for each, _ in node.next_functions if each is not None]
        last = {name for each in inputs for name in _owners(each, names, activations, biases | {id(x_B)})}
        found |= last
        waiting += [] if last else inputs
    return sorted(found)


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


def _nodes(outputs: Any) -> list[Any]:
    """The nodes of a module's outputs in the graph."""
    each = outputs if isinstance(outputs, tuple | list) else [outputs]
    return [y.grad_fn for y in each if isinstance(y, Tensor) and y.grad_fn is not None]


def _owners(node: Any, names: Mapping[int, list[str]], activations: set[Any], others: set[int]) -> set[str]:
    """The layers whose weights this node is, or is computed from; empty if it is an activation.

    `others`: ids of the leaves that no weight is computed from.
    """
    found: set[str] = set()
    seen: set[Any] = set()
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each in activations or len(seen) > COMPUTED:
            return set()
        seen.add(each)
        if hasattr(each, "variable"):
            if id(each.variable) in others:
                return set()
            found.update(names.get(id(each.variable), []))
        waiting += [other for other, _ in each.next_functions if other is not None and other not in seen]
    return found
