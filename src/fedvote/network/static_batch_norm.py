"""The paper's static batch norm (Appendix A-D): no running statistics, and no parameters unless they are given.

A batch norm that the user froze is the exception: it normalises by its own running statistics, in training as well.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedvote.network.replace_layers import replace_layers

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class StaticBatchNorm(nn.Module):
    """Normalises by the statistics of the batch alone."""

    def __init__(self, eps: float, weight: nn.Parameter | None = None, bias: nn.Parameter | None = None):
        super().__init__()
        self.eps, self.weight, self.bias = eps, weight, bias

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, None, None, self.weight, self.bias, training=True, eps=self.eps)


def batch_norms(module: nn.Module) -> dict[str, nn.Module]:
    return {name: layer for name, layer in module.named_modules() if isinstance(layer, _BatchNorm)}


def frozen_norms(module: nn.Module) -> dict[str, nn.Module]:
    """The batch norms that the user froze, in a network whose other weights train."""
    partly = {parameter.requires_grad for parameter in module.parameters()} == {True, False}
    return {name: layer for name, layer in batch_norms(module).items() if partly and _is_frozen(layer)}


def _is_frozen(norm: nn.Module) -> bool:
    """Whether nothing in a batch norm trains, and it has running statistics other than those that all begin with."""
    mean, var = norm.running_mean, norm.running_var
    learned = isinstance(mean, Tensor) and isinstance(var, Tensor) and bool(mean.any() or (var != 1).any())
    return learned and not any(parameter.requires_grad for parameter in norm.parameters())


def with_recording_norms(module: nn.Module, given: bool = False) -> nn.Module:
    """A copy whose batch norms record the statistics of the last batch.

    `given`: they keep their parameters. Those that the user froze and put into evaluation mode stay as they are: they
    alone are in that mode.
    """
    keeps = given and bool(frozen_norms(module))

    def recording(layer: nn.Module) -> nn.Module | None:
        if not isinstance(layer, _BatchNorm) or (keeps and not layer.training and _is_frozen(layer)):
            return None
        kind = next(norm for norm in NORMS if isinstance(layer, norm))
        norm = kind(layer.num_features, layer.eps, momentum=1.0, affine=given and layer.affine)
        if norm.affine:
            norm.weight, norm.bias = layer.weight, layer.bias
        return norm

    return replace_layers(module, recording).float().cpu().requires_grad_(False)


def with_static_norms(module: nn.Module) -> nn.Module:
    """A copy of a recording network that normalises by the batch alone, apart from batch norms in evaluation mode."""

    def static(layer: nn.Module) -> nn.Module | None:
        if not isinstance(layer, _BatchNorm) or not layer.training:
            return None
        return StaticBatchNorm(layer.eps, layer.weight, layer.bias)

    return replace_layers(module, static)


def has_affine_norms(module: nn.Module) -> bool:
    return any(isinstance(layer, _BatchNorm) and layer.affine for layer in module.modules())


def norm_statistics(norms: Mapping[str, nn.Module]) -> dict[str, Tensor]:
    """The running statistics of batch norms, by name."""
    return {f"{name}.{b}".lstrip("."): value for name, norm in norms.items() for b, value in norm.named_buffers()}
