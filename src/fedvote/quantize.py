"""The maths of a vote as pure functions: normalisation, stochastic rounding, tallies, plurality.

Federated Learning via Plurality Vote, Section IV (Eq. 11, Algorithm 1) and Appendix A-C.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from fedvote import packed
from fedvote.core import NO_VOTE
from fedvote.errors import ConfigError
from fedvote.randomness import BITS, Key, as_uniform, scramble, shared_random
from fedvote.settings import Settings

BINARY = (-1, 1)
TERNARY = (-1, 0, 1)
Alphabet = tuple[int, ...]


@dataclass(frozen=True)
class Normalisation(Settings, ABC):
    """A differentiable, strictly increasing map from all reals onto (-1, 1), with its inverse.

    A new one is a subclass with two one-line methods and a line in NORMALISATIONS.
    """

    a: float = 1.5  # steepness: the larger, the closer to sign(h)

    def __post_init__(self) -> None:
        if not 0 < self.a < math.inf:
            raise ConfigError(f"a is {self.a}, expected a finite number above 0; the paper has 1.5")

    @abstractmethod
    def __call__(self, h: Tensor) -> Tensor: ...

    @abstractmethod
    def inverse(self, w: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Tanh(Normalisation):
    """phi(h) = tanh(a h)."""

    def __call__(self, h: Tensor) -> Tensor:
        return torch.tanh(self.a * h)

    def inverse(self, w: Tensor) -> Tensor:
        return torch.atanh(w) / self.a


@dataclass(frozen=True)
class Erf(Normalisation):
    """phi(h) = erf(a h)."""

    def __call__(self, h: Tensor) -> Tensor:
        return torch.erf(self.a * h)

    def inverse(self, w: Tensor) -> Tensor:
        return torch.erfinv(w) / self.a


NORMALISATIONS: dict[str, type[Normalisation]] = {"tanh": Tanh, "erf": Erf}


def clip(soft: Tensor, p_min: float) -> Tensor:
    """clip(p) = max(p_min, min(1 - p_min, p)), for soft = 2 p - 1."""
    return soft.clamp(2 * p_min - 1, 1 - 2 * p_min)


def round_binary(w: Tensor, u: Tensor) -> Tensor:
    """Eq. 11: +1 with probability (w + 1) / 2, else -1, for u uniform in [0, 1); int8."""
    return _votes(_signs(u < (w + 1) / 2), w)


def round_ternary(w: Tensor, u: Tensor) -> Tensor:
    """Appendix A-C: sign(w) with probability |w|, else 0, for u uniform in [0, 1); int8."""
    return _votes(w.sign() * (u < w.abs()), w)


def threshold_binary(w: Tensor) -> Tensor:
    """The likelier vote of each weight; +1 for 0."""
    return _votes(_signs(w >= 0), w)


def threshold_ternary(w: Tensor) -> Tensor:
    """The likeliest vote of each weight; 0 where |w| is 1/2 or less."""
    return _votes(w.sign() * (w.abs() > 0.5), w)


def likeliest(w: Tensor, alphabet: Alphabet) -> Tensor:
    """The likeliest vote of each weight, as `threshold_...` has it, but in the weights' own type, for training."""
    if alphabet == BINARY:
        return torch.where(w >= 0, 1.0, -1.0)
    return w.sign() * (w.abs() > 0.5)


def random_vote(w: Tensor, alphabet: Alphabet) -> Tensor:
    """A vote with mean w, in the weights' own type, for training.

    The random numbers are hashes of each weight's place and bits. They change whenever the weight does, and need no
    generator: a GPU's recording of the step draws new ones in every step.
    """
    place = torch.arange(w.shape[-1], dtype=torch.int32, device=w.device)
    u = as_uniform(scramble(scramble((w * 2**30).to(torch.int32), place), 0) & 2**BITS - 1)
    if alphabet == BINARY:
        return torch.where(u < (w + 1) / 2, 1.0, -1.0)
    return w.sign() * (u < w.abs())


def share_of_votes(w: Tensor, share: Tensor, alphabet: Alphabet, random: bool = False) -> Tensor:
    """Weights that are partly their vote, the likeliest or a random one.

    They have the gradient of w: straight through (Bengio et al., 2013).
    """
    # (1 - s) w + s vote(w)
    fixed = w.detach()
    vote = random_vote(fixed, alphabet) if random else likeliest(fixed, alphabet)
    return torch.addcmul(w, share, vote - fixed)


def chances(w: Tensor, alphabet: Alphabet) -> Tensor:
    """(V, D) the chance of each vote of a weight that is rounded at random."""
    if alphabet == BINARY:
        return torch.stack([(1 - w) / 2, (1 + w) / 2])
    return torch.stack([(-w).clamp_min(0), 1 - w.abs(), w.clamp_min(0)])


def _signs(positive: Tensor) -> Tensor:
    """+1 where true, else -1; int8. `torch.where` would make eight bytes of each."""
    return positive.to(torch.int8).mul_(2).sub_(1)


def _votes(rounded: Tensor, w: Tensor) -> Tensor:
    return rounded.to(torch.int8).masked_fill_(w.isnan(), NO_VOTE)


ROUNDING = {BINARY: round_binary, TERNARY: round_ternary}
THRESHOLD = {BINARY: threshold_binary, TERNARY: threshold_ternary}


def round_stack(w_KD: Tensor, alphabet: Alphabet, generators: Sequence[torch.Generator]) -> Tensor:
    """Round each client's weights by its own generator, independently of the rest of the stack."""
    return torch.stack(
        [
            ROUNDING[alphabet](w_D, torch.rand(w_D.shape, generator=g, device=w_D.device))
            for w_D, g in zip(w_KD, generators, strict=True)
        ]
    )


def round_by_shared_random(w_KD: Tensor, alphabet: Alphabet, keys: Sequence[Key]) -> Tensor:
    """Round each client's weights by shared random numbers, which the server can draw from the same key."""
    numbers = (shared_random(key, w_KD.shape[1], w_KD.device) for key in keys)
    return torch.stack([ROUNDING[alphabet](w_D, as_uniform(r_D)) for w_D, r_D in zip(w_KD, numbers, strict=True)])


def tally(votes_KD: Tensor | packed.Packed, weights_K: Tensor, alphabet: Alphabet) -> Tensor:
    """(V, D) the weight behind each value of the alphabet: sum over m of lambda_m 1(w_m = v).

    One ballot at a time: K x D floats would take too much memory. Sums of equal whole weights are exact.
    """
    if isinstance(votes_KD, packed.Packed):
        return packed.tally(votes_KD, weights_K)
    if votes_KD.device.type == "cpu":  # the same sums, many times faster; a GPU gains nothing from packing
        return packed.tally(packed.pack(votes_KD, alphabet), weights_K)
    total_VD = torch.zeros((len(alphabet), votes_KD.shape[1]), device=votes_KD.device)
    for votes_D, weight in zip(votes_KD, weights_K, strict=True):
        for row, value in zip(total_VD, alphabet, strict=True):
            row += weight * (votes_D == value)
    return total_VD


def soft_vote(tally_VD: Tensor, alphabet: Alphabet) -> Tensor:
    """The mean vote, in [-1, 1]; 2 p - 1 for a binary alphabet (Lemma 5: the next normalised weight)."""
    values = tally_VD.new_tensor(alphabet)
    return (values @ tally_VD) / tally_VD.sum(0)


def plurality(tally_VD: Tensor, alphabet: Alphabet, generator: torch.Generator) -> Tensor:
    """The value with the most weight behind it, ties broken at random; int8."""
    leads_VD = tally_VD == tally_VD.amax(0)
    random_VD = torch.rand(tally_VD.shape, generator=generator, device=tally_VD.device)
    first_D, *others = torch.where(leads_VD, random_VD, -1.0)

    # argmax over values, one value at a time: many times faster for two or three
    winner_D, most_D = torch.full_like(first_D, alphabet[0], dtype=torch.int8), first_D
    for value, drawn_D in zip(alphabet[1:], others, strict=True):
        winner_D = torch.where(drawn_D > most_D, value, winner_D)
        most_D = torch.maximum(most_D, drawn_D)
    return winner_D


def to_level(soft: Tensor, levels: int) -> Tensor:
    """The number of the nearest of `levels` evenly spaced points on [-1, 1]; int16."""
    return torch.round((soft.clamp(-1, 1) + 1) / 2 * (levels - 1)).to(torch.int16)


def from_level(level: Tensor, levels: int) -> Tensor:
    """The point on [-1, 1] with the number `level`."""
    return level.float() * (2 / (levels - 1)) - 1
