"""Convolution and batch norm for stacks of clients on a GPU: an ordinary call a client instead of one grouped call.

Under vmap a convolution whose weights differ by client has K groups, for which GPUs have no fast kernels. A call a
client keeps the layout that tensor cores like (channels last), and where one client's part alone fills the device it
is faster. Everything else, from ReLU to the optimiser, stays one call for all clients, as does all on a CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

# From where on a layer is run client by client: above those of LeNet-5, which was slower that way on an H200, and below
# those of VGG-7, which was faster (batches of 100, 31 clients).
LARGE_OUTPUT = 2_600_000  # elements of one client's output
LARGE_WORK = 2_000_000_000  # multiplications for it


class ByClient(torch.autograd.Function):
    """op(*tensors); under vmap, op once for each client."""

    @staticmethod
    def forward(op: Callable[..., Tensor], *tensors: Tensor) -> Tensor:
        return op(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.op, *tensors = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        with torch.enable_grad():
            tensors = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
            return None, *torch.autograd.grad(ctx.op(*tensors), tensors, grad)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], op: Callable[..., Tensor], *tensors: Tensor
    ) -> tuple[Tensor, int]:
        # unbind, not x[k]: the gradient of x[k] is a tensor of zeros as large as x, for every k
        dims = zip(tensors, in_dims[1:], strict=True)
        rows = [[tensor] * info.batch_size if dim is None else tensor.unbind(dim) for tensor, dim in dims]
        # cat, not stack: it keeps channels last
        return torch.cat([op(*row) for row in zip(*rows, strict=True)]).unflatten(0, (info.batch_size, -1)), 0


by_client: Callable[..., Tensor] = ByClient.apply


class StackedConv2d(nn.Conv2d):
    """nn.Conv2d, fast for a stack of clients on a GPU."""

    def forward(self, x: Tensor) -> Tensor:
        if not (x.is_cuda and self.padding_mode == "zeros" and self._is_large(x)):
            return super().forward(x)
        weight = self.weight
        if torch.is_autocast_enabled("cuda"):  # here for all clients at once, not later for each
            x, weight = x.to(torch.get_autocast_dtype("cuda")), weight.to(torch.get_autocast_dtype("cuda"))
        y = by_client(self._convolve, x, weight)
        return y if self.bias is None else y + self.bias[:, None, None].to(y.dtype)

    def _is_large(self, x: Tensor) -> bool:
        pixels = x[:, 0].numel() // prod(self.stride)
        return pixels * self.out_channels > LARGE_OUTPUT or pixels * self.weight.numel() > LARGE_WORK

    def _convolve(self, x: Tensor, weight: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        return F.conv2d(x, weight, None, self.stride, self.padding, self.dilation, self.groups)


class StaticBatchNorm(nn.Module):
    """The paper's static batch norm (Appendix A-D): no parameters, no running statistics, the batch alone."""

    def __init__(self, eps: float):
        super().__init__()
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        if not x.is_cuda or x.ndim != 4 or x.numel() < LARGE_OUTPUT:
            return self._normalise(x)
        return by_client(self._normalise, x)

    def _normalise(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, None, None, training=True, eps=self.eps)


def prepare(module: nn.Module) -> None:
    """Put these layers in place of the ordinary ones, in a module that is ours to change."""
    for layer in list(module.modules()):
        if type(layer) is nn.Conv2d:
            layer.__class__ = StackedConv2d
        for name, child in list(layer._modules.items()):
            if isinstance(child, _BatchNorm):
                setattr(layer, name, StaticBatchNorm(child.eps))
