"""Find the layers of a network that cannot be trained in a federation."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized
from torch.nn.utils.prune import BasePruningMethod
from torch.nn.utils.spectral_norm import SpectralNorm

from fedvote.errors import ModelError, article
from fedvote.network.voted_weights import VOTABLE


def problems(module: nn.Module, votes: bool = True) -> list[str]:
    """One sentence, with the fix, for every layer that cannot be trained; `votes`: or not voted on."""
    found = []
    for name, layer in module.named_modules():
        kind, where = type(layer).__name__, name or "the network itself"
        if isinstance(layer, nn.DataParallel | torch.jit.ScriptModule):
            inner = "its .module" if isinstance(layer, nn.DataParallel) else "the nn.Module that it was made of"
            return [f"{where} is {article(kind)}, which cannot be trained as a function: use {inner}"]
        if any(is_lazy(tensor) for tensor in (*layer.parameters(recurse=False), *layer.buffers(recurse=False))):
            found.append(f"{where} ({kind}) has no shape yet: run one batch through the network first")
            continue
        if any(tensor.is_meta for tensor in (*layer.parameters(recurse=False), *layer.buffers(recurse=False))):
            found.append(f"{where} ({kind}) is on the device meta, without values: make it on the CPU")
            continue
        if isinstance(layer, nn.RNNBase) and layer.dropout > 0:
            found.append(
                f"{where} ({kind}) drops between its layers by random numbers outside the run's seed: set dropout=0, "
                "and put nn.Dropout between recurrent layers of their own"
            )
        if isinstance(layer, nn.RReLU):
            found.append(f"{where} (RReLU) draws random numbers outside the run's seed: use nn.LeakyReLU")
        if isinstance(layer, nn.SyncBatchNorm):
            found.append(f"{where} (SyncBatchNorm) mixes statistics of several processes: use nn.BatchNorm2d")
        if isinstance(layer, _InstanceNorm) and layer.track_running_stats:
            found.append(f"{where} ({kind}) keeps running statistics: set track_running_stats=False")
        if is_parametrized(layer):
            if votes:
                found.append(
                    f"{where} ({kind}) computes its weights from other tensors: call torch.nn.utils.parametrize."
                    "remove_parametrizations on it, or use a method without votes"
                )
        elif isinstance(layer, VOTABLE) and "weight" not in layer._parameters:
            found.append(f"{where} ({kind}) computes its weights by a hook: {_remedy(layer)}")
        for parameter_name, p in layer.named_parameters(recurse=False):
            if not p.is_floating_point():
                found.append(f"{where} ({kind}) has {parameter_name} of {p.dtype}: make it float32")
    if not found and not any(True for _ in module.parameters()):
        found.append(f"the network itself ({type(module).__name__}) has no weights, so nothing can train: add a layer")
    return found


def _remedy(layer: nn.Module) -> str:
    """How to remove the hook that computes a layer's weights."""
    hooks = list(layer._forward_pre_hooks.values())
    if any(isinstance(hook, BasePruningMethod) for hook in hooks):
        return 'call torch.nn.utils.prune.remove(layer, "weight") on it, which makes the pruning permanent'
    norm = "spectral_norm" if any(isinstance(hook, SpectralNorm) for hook in hooks) else "weight_norm"
    return (
        f"call torch.nn.utils.remove_{norm} on it, or use torch.nn.utils.parametrizations.{norm} with a method without "
        "votes"
    )


def uncompiled(module: nn.Module) -> nn.Module:
    """The module that torch.compile was given: training compiles its own steps (`compile`)."""
    inner = getattr(module, "_orig_mod", module)
    return inner if isinstance(inner, nn.Module) else module


def refuse(found: list[str]) -> None:
    if found:
        raise ModelError(f"{len(found)} layer(s) cannot be trained: " + "; ".join(found))
