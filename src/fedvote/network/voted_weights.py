"""Which weights of a module are voted on."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from torch import nn

from fedvote.errors import ModelError

VOTABLE = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
)  # fmt: skip
"""Layers whose weights can be voted on."""


def votable_weights(module: nn.Module, keep_float: Sequence[str] | None) -> set[str]:
    """Names of the voted weights. A weight shared with a layer kept float stays float. `keep_float`: see Network."""
    layers = {name: layer for name, layer in module.named_modules() if isinstance(layer, VOTABLE)}
    if keep_float is None:
        linear = [name for name, layer in layers.items() if isinstance(layer, nn.Linear)]
        keep_float = (linear or list(layers))[-1:]
    for pattern in keep_float:
        if not any(fnmatchcase(name, pattern) for name in layers):
            raise ModelError(
                f"keep_float names {pattern!r}, expected a layer with weights; there are: {', '.join(layers)}"
            )
    kept = {id(layer.weight) for name, layer in layers.items() if any(fnmatchcase(name, p) for p in keep_float)}
    voted = {id(layer.weight) for layer in layers.values()} - kept
    return {name for name, parameter in module.named_parameters() if id(parameter) in voted}
