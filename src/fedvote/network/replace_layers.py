"""A copy of a module with some of its layers replaced."""

from __future__ import annotations

import copy
from collections.abc import Callable

from torch import nn

from fedvote.errors import ModelError, reason


def replace_layers(module: nn.Module, replacement: Callable[[nn.Module], nn.Module | None]) -> nn.Module:
    """`replacement` gives the new layer, or None to keep the old one. Layers used twice are replaced in both places."""
    try:
        copied = nn.Sequential(copy.deepcopy(module))  # in a Sequential, so that every layer has a parent
    except Exception as error:  # of the user's own attributes
        raise ModelError(
            f"the network cannot be copied ({reason(error)}), as every client needs it: keep no outputs in its "
            "attributes, or detach them, and no files or locks"
        ) from error
    for parent in list(copied.modules()):
        for name, layer in list(parent._modules.items()):  # named_children leaves out a layer's second use
            if layer is not None and (new := replacement(layer)) is not None:
                setattr(parent, name, new)
    return copied[0]
