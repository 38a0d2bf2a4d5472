"""Layers as plain matrix products, for small networks of many clients that are compiled into shared GPU kernels.

Under vmap a convolution becomes one with as many groups as there are clients, which libraries run a group at a time.
As patches times weights it becomes one batched product; a compiler makes the patches, and sums their gradients, in
one kernel each. Without one this would be slower than a convolution.
"""

from __future__ import annotations

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

ALIGNED = 8  # numbers, in whose multiples tensor cores like rows to be


class Patches(nn.Module):
    """A two-dimensional convolution of images as a product: every output pixel's patch of input, times the weights."""

    def __init__(self, layer: nn.Conv2d, in_bfloat16: bool):
        super().__init__()
        self.weight, self.bias, self.in_bfloat16 = layer.weight, layer.bias, in_bfloat16
        self.stride, self.dilation = layer.stride, layer.dilation
        around = layer._reversed_padding_repeated_twice  # of width, then height: before, after
        self.padding = (0, 0, *around) if any(around) else ()

    def forward(self, x: Tensor) -> Tensor:
        outputs, channels, *kernel = self.weight.shape
        x = x.movedim(1, -1)
        x = x.bfloat16() if self.in_bfloat16 else x  # which is what would be made of the patches, many times as large
        x = F.pad(x, self.padding) if self.padding else x
        (dy, dx), (sy, sx) = self.dilation, self.stride
        height, width = (
            (size - d * (k - 1) - 1) // s + 1
            for size, k, d, s in zip(x.shape[1:3], kernel, self.dilation, self.stride, strict=True)
        )
        patches = torch.stack(
            [
                x[:, i * dy : i * dy + (height - 1) * sy + 1 : sy, j * dx : j * dx + (width - 1) * sx + 1 : sx]
                for i in range(kernel[0])
                for j in range(kernel[1])
            ],
            dim=3,
        )
        rows = aligned(patches.reshape(-1, kernel[0] * kernel[1] * channels))
        y = rows @ aligned(self.weight.movedim(1, -1).flatten(1)).mT
        y = y.view(len(x), height, width, outputs)
        return (y if self.bias is None else y + self.bias.to(y.dtype)).movedim(-1, 1)


class Product(nn.Module):
    """A linear layer, written so that the gradient of its weights comes out as these lie in memory."""

    def __init__(self, layer: nn.Linear):
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 2:
            return F.linear(x, self.weight, self.bias)
        y = (self.weight @ aligned(x.mT)).mT[: len(x)]
        return y if self.bias is None else y + self.bias.to(y.dtype)


def as_products(module: nn.Module, in_bfloat16: bool) -> nn.Module:
    """A copy with the same parameters by the same names; layers that cannot be rewritten stay as they are."""
    copied = nn.Sequential(copy.deepcopy(module))  # in a Sequential, so that every layer has a parent
    for parent in list(copied.modules()):
        for name, layer in list(parent._modules.items()):  # named_children leaves out a layer's second use
            if type(layer) is nn.Conv2d and layer.groups == 1 and layer.padding_mode == "zeros":
                setattr(parent, name, Patches(layer, in_bfloat16))
            elif type(layer) is nn.Linear:
                setattr(parent, name, Product(layer))
    return copied[0]


def aligned(rows: Tensor) -> Tensor:
    """Filled up with zeros, which change no product."""
    missing = -rows.shape[-1] % ALIGNED
    return F.pad(rows, (0, missing)) if missing else rows
