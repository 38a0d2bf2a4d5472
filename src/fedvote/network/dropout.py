"""Dropout by the run's key: the mask of a client's step is the same in the simulator, on a GPU and over Flower.

torch draws masks from one global generator, whose numbers depend on how clients are stacked. Here number i of a mask is
a hash of i, the number of the dropout in the forward pass, and 62 bits of (seed, round, client, step). A mode of torch
sees every dropout, as a layer, as a function, and within attention, and computes it that way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import FunctionType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from fedvote.errors import ModelError
from fedvote.randomness import BITS, Key
from fedvote.randomness.random_rows import FACTORS

ALPHA = -1.7580993408473766  # the value of a dropped SELU unit: minus its scale times its alpha
FEATURES = {F.dropout1d: 1, F.dropout2d: 2, F.dropout3d: 3}  # axes of one channel, which is dropped whole
RANDOM = {
    torch.rand, torch.randn, torch.randint, torch.randperm, torch.normal, torch.bernoulli, torch.multinomial,
    torch.poisson, torch.rand_like, torch.randn_like, torch.randint_like, Tensor.bernoulli_, Tensor.normal_,
    Tensor.uniform_, Tensor.exponential_, Tensor.random_, F.gumbel_softmax, F.rrelu,
}  # fmt: skip


class KeyedDropout(TorchFunctionMode):
    """While this mode is active, dropout follows from `noise`, two int32 of 31 bits; without it, nothing is dropped."""

    def __init__(self, noise: Tensor | None = None):
        super().__init__()
        self.noise = noise
        self.active = 0  # dropouts that ran in training mode, with p > 0

    def __torch_function__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        options = dict(kwargs or {})
        if function in RANDOM:
            raise ModelError(
                f"{function.__name__} in the forward pass draws random numbers outside the run's seed: use nn.Dropout, "
                "whose masks follow from the seed, or remove it"
            )
        if function is F.scaled_dot_product_attention:
            return self.attention(function, *args, **options)
        if function is F.multi_head_attention_forward:
            return _multi_head(self)(*args, **options)
        if function in (F.alpha_dropout, F.feature_alpha_dropout):
            axes = 0 if function is F.alpha_dropout else args[0].ndim - 2
            selu: dict[str, Any] = {"training": False, "axes": axes, "alpha": True}
            return self.drop(*args, **selu | options)
        if function in FEATURES:
            return self.drop(*args, **options | {"axes": FEATURES[function]})
        if function in (F.dropout, torch.dropout):
            return self.drop(*args, **{"training" if name == "train" else name: v for name, v in options.items()})
        return function(*args, **options)

    def drop(
        self,
        input: Tensor,
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
        axes: int = 0,
        alpha: bool = False,
    ) -> Tensor:
        """`axes`: how many of the last axes one random number is for. `alpha`: for networks of SELU."""
        if not p or not training:
            return input
        self.active += 1
        if self.noise is None:
            return input
        kept = self.mask(input.shape[: input.ndim - axes] + (1,) * axes, p)
        if alpha:
            # a (x_i or alpha') + b keeps mean and variance (Klambauer et al., 2017)
            a = ((1 - p) * (1 + p * ALPHA**2)) ** -0.5 if p < 1 else 0.0
            dropped = a * torch.where(kept, input, torch.full_like(input, ALPHA)) - a * ALPHA * p
        else:
            # x_i / (1 - p) with probability 1 - p, else 0
            dropped = torch.where(kept, input / (1 - p) if p < 1 else input, torch.zeros_like(input))
        return input.copy_(dropped) if inplace else dropped

    def mask(self, shape: tuple[int, ...], p: float) -> Tensor:
        """True with probability 1 - p, by hashes of each element's index."""
        assert self.noise is not None
        index = torch.arange(math.prod(shape), dtype=torch.int32, device=self.noise.device)
        kept: Tensor = hashed(index, self.noise ^ _salt(self.active)) >= round(p * 2**BITS)
        return kept.view(shape)

    def attention(self, function: Callable[..., Tensor], *args: Any, **options: Any) -> Tensor:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
        given = dict(zip(names, args, strict=False)) | options
        p = given.pop("dropout_p", 0.0)
        if self.noise is None or not p:
            self.active += bool(p)
            return function(**given)
        return _attention(partial(self.drop, p=p), **given)


def noise_of(keys: Sequence[Key], steps: int) -> Tensor:
    """(K, S, 2) the bits that the masks of each client's steps follow from."""
    numbers = [[key.number(f"dropout {step}") for step in range(steps)] for key in keys]
    parts = [[(n & 2**31 - 1, n >> 31 & 2**31 - 1) for n in row] for row in numbers]
    return torch.tensor(parts, dtype=torch.int32).view(len(keys), steps, 2)


def hashed(index: Tensor, parts: Tensor) -> Tensor:
    """Whole numbers from 0 to 2^24 - 1, evenly distributed: the hash of `shared_random`, for parts that are tensors."""
    x: Tensor = index
    for part in parts.unbind():
        x = x ^ part
        x = (x ^ (x >> 16 & 0xFFFF)) * FACTORS[0]
        x = (x ^ (x >> 15 & 0x1FFFF)) * FACTORS[1]
        x = x ^ (x >> 16 & 0xFFFF)
    return x.bitwise_and(2**BITS - 1)


def _salt(count: int) -> int:
    """Bits that tell one dropout of a forward pass from the next: its number times 2^32 over the golden ratio."""
    return count * 0x9E3779B1 & 2**31 - 1


def _attention(
    drop: Callable[[Tensor], Tensor],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(Q K^T / sqrt(d) + mask), some of it dropped, times V."""
    if enable_gqa:
        key, value = (each.repeat_interleave(query.shape[-3] // each.shape[-3], -3) for each in (key, value))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if attn_mask is not None:
        boolean = attn_mask.dtype == torch.bool
        scores = scores.masked_fill(~attn_mask, -math.inf) if boolean else scores + attn_mask
    return drop(scores.softmax(-1)) @ value


def _multi_head(mode: KeyedDropout) -> Callable[..., Any]:
    """torch's own multi-head attention, with the mode's dropout in it: a mode does not see inside this function."""
    theirs = F.multi_head_attention_forward
    names = {
        "has_torch_function": lambda _: False,
        "dropout": mode.drop,
        "scaled_dot_product_attention": partial(mode.attention, F.scaled_dot_product_attention),
    }
    ours = FunctionType(theirs.__code__, theirs.__globals__ | names, theirs.__name__, theirs.__defaults__)
    ours.__kwdefaults__ = theirs.__kwdefaults__
    return ours
