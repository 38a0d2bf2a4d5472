"""The paper's static batch norm (Appendix A-D): no parameters and no running statistics."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from fedvote.network.replace_layers import replace_layers

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d)


class StaticBatchNorm(nn.Module):
    """Normalises by the statistics of the batch alone."""

    def __init__(self, eps: float):
        super().__init__()
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, None, None, training=True, eps=self.eps)


def with_recording_norms(module: nn.Module) -> nn.Module:
    """A copy whose batch norms have no parameters and record the statistics of the last batch."""

    def recording(layer: nn.Module) -> nn.Module | None:
        if not isinstance(layer, _BatchNorm):
            return None
        kind = next(norm for norm in NORMS if isinstance(layer, norm))
        return kind(layer.num_features, layer.eps, momentum=1.0, affine=False)

    return replace_layers(module, recording).float().cpu().requires_grad_(False)


def with_static_norms(module: nn.Module) -> nn.Module:
    """A copy that normalises by the batch alone."""
    return replace_layers(module, lambda layer: StaticBatchNorm(layer.eps) if isinstance(layer, _BatchNorm) else None)
