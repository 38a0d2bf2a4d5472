"""Which weights of a module are voted on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fnmatch import fnmatchcase

from torch import nn

from fedvote.errors import ModelError, some
from fedvote.network.head import head
from fedvote.network.trial import trial_inputs

VOTABLE = (
    nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d, nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d,
)  # fmt: skip
"""Layers whose weights are voted on, unless they are kept float."""


def votable_weights(
    module: nn.Module,
    keep_float: Sequence[str] | None,
    vote: Sequence[str] = (),
    shape: Sequence[int] | None = None,
    unclear: bool = False,
    frozen: Collection[str] = (),
) -> set[str]:
    """Names of the voted weights. A weight shared with a layer kept float stays float.

    `keep_float`, `vote`, `shape`: see Network. `unclear`: accept a network whose last layer is not clear. `frozen`:
    names of weights that the user froze, which are not voted on.
    """
    for name, patterns in (("keep_float", keep_float), ("vote", vote)):
        if isinstance(patterns, str):
            raise ModelError(f"{name} is {patterns!r}, expected a list of names: pass {name}=[{patterns!r}]")
        if patterns is not None and not (
            isinstance(patterns, Collection) and all(isinstance(p, str) for p in patterns)
        ):
            raise ModelError(f"{name} is {patterns!r}, expected a list of names, such as {name}=['head']")
    layers: dict[str, nn.Module] = {
        name: layer
        for name, layer in module.named_modules()
        if isinstance(layer, VOTABLE) and "weight" in layer._parameters  # not computed from others
    }
    named = _named(module, vote, frozen)
    if keep_float is None:
        keep_float = [name for name in _last(module, layers, shape, unclear) if id(layers[name].weight) not in named]
    for pattern in keep_float:
        if not any(fnmatchcase(name, pattern) for name in layers):
            raise ModelError(
                f"keep_float names {pattern!r}, expected a layer with weights; there are: {', '.join(layers)}"
            )
    kept = {id(layer.weight) for name, layer in layers.items() if any(fnmatchcase(name, p) for p in keep_float)}
    if both := [name for name, parameter in module.named_parameters() if id(parameter) in kept & named]:
        raise ModelError(f"keep_float and vote both name {some(both)}: leave it out of one of them")
    voted = {id(layer.weight) for layer in layers.values()} - kept | named
    return {name for name, parameter in module.named_parameters() if id(parameter) in voted} - set(frozen)


def without_votable(
    module: nn.Module, kind: str, votes: bool, frozen: Collection[str], keep_float: Sequence[str] | None
) -> set[str]:
    """All weights that train, for a method without votes; ModelError for a method with votes.

    For networks without votable weights, or whose user keeps them all float. `kind`: the name of the user's class.
    """
    weights = {name: parameter for name, parameter in module.named_parameters() if name not in frozen}
    if not votes:
        return set(weights)
    free = [
        name
        for name, parameter in weights.items()
        if parameter.ndim > 1 and not isinstance(module.get_submodule(name.rpartition(".")[0]), VOTABLE)
    ]
    others = f", or name others in vote: {some(free)}" if free else ""
    if keep_float:
        raise ModelError(
            f"keep_float names {some([repr(each) for each in keep_float])}, which leaves no weights to vote on: name "
            f"fewer layers, or take a float method, such as FedAvg{others}"
        )
    raise ModelError(
        f"{kind} has no weights to vote on: expected at least one convolution or linear layer besides those kept "
        f"float; add one, or pass keep_float=[] to vote on the last layer as well{others}"
    )


def frozen_weights(module: nn.Module, batch: nn.Module) -> frozenset[str]:
    """Parameters of `batch` that the user froze in the module; none if nothing else is left to train."""
    fixed = {name for name, p in module.named_parameters(remove_duplicate=False) if not p.requires_grad}
    names = {name for name, _ in batch.named_parameters()}
    return frozenset(fixed & names) if names - fixed else frozenset()


def _last(module: nn.Module, layers: dict[str, nn.Module], shape: Sequence[int] | None, unclear: bool) -> list[str]:
    """The layer that stays float: the last one that runs; without a shape to run it on, the last linear one."""
    found = None
    if shape is not None:
        try:
            found = head(module, layers, trial_inputs(2, shape))
        except ModelError:
            if not unclear:
                raise
    if found is None:
        linear = [name for name, layer in layers.items() if isinstance(layer, nn.Linear)]
        found = (linear or list(layers))[-1:]
    return found


def _named(module: nn.Module, vote: Iterable[str], frozen: Collection[str]) -> set[int]:
    """The ids of the weights that `vote` names, by their own name or by their layer's."""
    weights = {name: p for name, p in module.named_parameters(remove_duplicate=False) if p.ndim > 1}
    found: set[int] = set()
    for pattern in vote:
        fits = {n for n in weights if fnmatchcase(n, pattern) or fnmatchcase(n.rpartition(".")[0], pattern)}
        if not fits:
            raise ModelError(
                f"vote names {pattern!r}, expected a weight of two axes or more; there are: {', '.join(weights)}"
            )
        if fits <= set(frozen):
            raise ModelError(
                f"vote names {pattern!r}, but {some(sorted(fits))} is frozen (requires_grad=False), so nobody votes on "
                "it: leave it out of vote, or call requires_grad_(True) on it"
            )
        found |= {id(weights[name]) for name in fits}
    return found
