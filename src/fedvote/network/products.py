"""Layers as matrix products, so that many clients with small networks share compiled GPU kernels.

Under vmap a convolution gets one group per client, and libraries run the groups one after the other. Written as patches
times weights it is one batched product. The compiler builds the patches in one kernel and sums their gradients in
another; without a compiler, a convolution is faster.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from fedvote.network.replace_layers import replace_layers

ALIGNED = 8  # tensor cores prefer rows whose length is a multiple of this


class Patches(nn.Module):
    """A 2D convolution as a matrix product: the input patch of every output pixel, times the weights."""

    def __init__(self, layer: nn.Conv2d, in_bfloat16: bool):
        super().__init__()
        self.weight, self.bias, self.in_bfloat16 = layer.weight, layer.bias, in_bfloat16
        self.stride, self.dilation = layer.stride, layer.dilation
        padding = layer._reversed_padding_repeated_twice  # left, right, top, bottom
        self.padding = (0, 0, *padding) if any(padding) else ()

    def forward(self, x: Tensor) -> Tensor:
        outputs, channels, *kernel = self.weight.shape
        x = x.movedim(1, -1)
        x = x.bfloat16() if self.in_bfloat16 else x  # cast here: the patches are many times larger
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
    """A linear layer whose weight gradient has the same memory layout as the weights."""

    def __init__(self, layer: nn.Linear):
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias

    def forward(self, x: Tensor) -> Tensor:
        if x.ndim != 2:
            return F.linear(x, self.weight, self.bias)
        y = (self.weight @ aligned(x.mT)).mT[: len(x)]
        return y if self.bias is None else y + self.bias.to(y.dtype)


def as_products(module: nn.Module, in_bfloat16: bool) -> nn.Module:
    """A copy with the same parameter names. Layers that cannot be rewritten stay as they are."""

    def product(layer: nn.Module) -> nn.Module | None:
        if type(layer) is nn.Conv2d and layer.groups == 1 and layer.padding_mode == "zeros":
            return Patches(layer, in_bfloat16)
        return Product(layer) if type(layer) is nn.Linear else None

    return replace_layers(module, product)


def aligned(rows: Tensor) -> Tensor:
    """Pad rows with zeros to a multiple of ALIGNED. Products do not change."""
    missing = -rows.shape[-1] % ALIGNED
    return F.pad(rows, (0, missing)) if missing else rows
