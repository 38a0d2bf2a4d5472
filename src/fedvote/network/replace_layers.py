"""A copy of a module with some of its layers replaced."""

from __future__ import annotations

import copy
from collections.abc import Callable

from torch import nn


def replace_layers(module: nn.Module, replacement: Callable[[nn.Module], nn.Module | None]) -> nn.Module:
    """`replacement` gives the new layer, or None to keep the old one. Layers used twice are replaced in both places."""
    copied = nn.Sequential(copy.deepcopy(module))  # in a Sequential, so that every layer has a parent
    for parent in list(copied.modules()):
        for name, layer in list(parent._modules.items()):  # named_children leaves out a layer's second use
            if layer is not None and (new := replacement(layer)) is not None:
                setattr(parent, name, new)
    return copied[0]
