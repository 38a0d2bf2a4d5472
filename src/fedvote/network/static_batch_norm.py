"""The paper's static batch norm (Appendix A-D): no running statistics, and no parameters unless they are given."""

from __future__ import annotations

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


def with_recording_norms(module: nn.Module, affine: bool = False) -> nn.Module:
    """A copy whose batch norms record the statistics of the last batch. `affine`: they keep their parameters."""

    def recording(layer: nn.Module) -> nn.Module | None:
        if not isinstance(layer, _BatchNorm):
            return None
        kind = next(norm for norm in NORMS if isinstance(layer, norm))
        norm = kind(layer.num_features, layer.eps, momentum=1.0, affine=affine and layer.affine)
        if norm.affine:
            norm.weight, norm.bias = layer.weight, layer.bias
        return norm

    return replace_layers(module, recording).float().cpu().requires_grad_(False)


def with_static_norms(module: nn.Module) -> nn.Module:
    """A copy that normalises by the batch alone."""

    def static(layer: nn.Module) -> nn.Module | None:
        return StaticBatchNorm(layer.eps, layer.weight, layer.bias) if isinstance(layer, _BatchNorm) else None

    return replace_layers(module, static)


def has_affine_norms(module: nn.Module) -> bool:
    return any(isinstance(layer, _BatchNorm) and layer.affine for layer in module.modules())


def norm_statistics(module: nn.Module) -> dict[str, Tensor]:
    """The running statistics of all batch norms, by name."""
    norms = [(name, layer) for name, layer in module.named_modules() if isinstance(layer, _BatchNorm)]
    return {f"{name}.{b}".lstrip("."): value for name, norm in norms for b, value in norm.named_buffers(recurse=False)}
