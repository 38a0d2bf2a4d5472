"""FedVote on a problem whose constants are known: both sides of Theorem 1 and of Lemmas 7 to 9, round by round.

f(w) = L/2 |w - b|^2, the same for all clients. A stochastic gradient has an error of +-noise in every coordinate.
Expectations are means over independent runs. Soft votes are clipped to a box that holds b: that only lowers f.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import atanh, tanh

import torch
from torch import Tensor

from fedvote.quantize import Tanh, clip, round_binary
from fedvote.randomness import Key

Sides = dict[str, tuple[float, float]]
"""Statement -> its left and its right side."""


@dataclass(frozen=True)
class Problem:
    clients: int = 31  # M
    a: float = 1.5  # phi(h) = tanh(a h)
    weights: int = 32  # d
    smoothness: float = 1.0  # L
    noise: float = 0.5  # size of the error in every coordinate of a gradient with respect to w
    steps: int = 5  # tau
    p_min: float = 0.1  # soft votes are clipped to p_min, 1 - p_min

    @property
    def c2(self) -> float:
        """The largest derivative of phi."""
        return self.a

    def c1(self, rate: float) -> float:
        """The least derivative of phi: at the largest |h| that a client reaches from a clipped soft vote."""
        # |h| <= phi^-1(1 - 2 p_min) + tau eta c2 (2 L + noise), since |w - b| < 2
        start = atanh(1 - 2 * self.p_min) / self.a
        farthest = start + self.steps * rate * self.c2 * (2 * self.smoothness + self.noise)
        return self.a * (1 - tanh(self.a * farthest) ** 2)

    def allows(self, rate: float) -> bool:
        """The restriction on the learning rate in the proof of Theorem 1."""
        # (L eta)^2 tau (tau - 1) / 2 + L eta tau / c1^2 <= 1 / c2^2
        step, tau, c1, c2 = self.smoothness * rate, self.steps, self.c1(rate), self.c2
        return (c1 * c2 * step) ** 2 * tau * (tau - 1) / 2 + c2**2 * step * tau <= c1**2

    @cached_property
    def rate(self) -> float:
        """eta: the largest learning rate that the proof allows."""
        low, high = 0.0, 1.0
        for _ in range(50):
            middle = (low + high) / 2
            low, high = (middle, high) if self.allows(middle) else (low, middle)
        return low

    @property
    def gradient_variance(self) -> float:
        """sigma_eps^2: a bound on E |stochastic gradient - gradient|^2, with respect to h."""
        return self.c2**2 * self.noise**2 * self.weights

    def optimum(self) -> Tensor:
        """b, in (-0.6, 0.6)."""
        return 1.2 * torch.rand(self.weights, generator=Key(0).torch("optimum"), dtype=torch.float64) - 0.6


@dataclass(frozen=True)
class Moments:
    """Measured in one round: means over runs. The expectation over votes is exact, by Lemma 3."""

    excess: float  # f(w) - f(w*), at the start of the round
    gradient: float  # |grad f(w)|^2, at the start of the round
    local_gradients: float  # |g|^2 of local gradients with respect to h, summed over clients and steps
    opposed: float  # R, summed over clients
    rounding: float  # sigma_k^2 = d - |w_m|^2 (Lemma 3), mean over clients
    divergence: float  # |w_m - w|^2, mean over clients
    descent: float  # <grad f(w), w - mean of w_m>
    change: float  # |w - mean vote|^2, expected over votes


def moments(problem: Problem, rounds: int, runs: int, seed: int) -> Iterator[Moments]:
    """The rounds of so many independent runs."""
    phi, b_D = Tanh(problem.a), problem.optimum()
    random = Key(seed).torch("known problem")
    w_RD = (-0.7 * b_D.sign()).expand(runs, -1)
    for _ in range(rounds):
        grad_R1D = problem.smoothness * (w_RD - b_D)[:, None]
        h_RMD = phi.inverse(w_RD)[:, None].repeat(1, problem.clients, 1)
        squares, opposed = torch.zeros(()), torch.zeros(())
        for _ in range(problem.steps):
            w_RMD = phi(h_RMD)
            slope_RMD = problem.a * (1 - w_RMD**2)
            grad_RMD = problem.smoothness * (w_RMD - b_D)
            squares = squares + (slope_RMD * grad_RMD).square().sum()
            opposed = opposed - (grad_R1D * grad_RMD).clamp_max(0).sum()
            signs_RMD = 2 * torch.randint(2, h_RMD.shape, generator=random) - 1
            h_RMD = h_RMD - problem.rate * slope_RMD * (grad_RMD + problem.noise * signs_RMD)
        w_RMD = phi(h_RMD)
        moved_RD = w_RD - w_RMD.mean(1)
        square_R = grad_R1D.square().sum((1, 2))
        rounding = problem.weights - float(w_RMD.square().sum(-1).mean())
        yield Moments(
            excess=float(square_R.mean()) / (2 * problem.smoothness),
            gradient=float(square_R.mean()),
            local_gradients=float(squares) / runs,
            opposed=float(opposed) / runs,
            rounding=rounding,
            divergence=float((w_RMD - w_RD[:, None]).square().sum(-1).mean()),
            descent=float((grad_R1D[:, 0] * moved_RD).sum(-1).mean()),
            change=float(moved_RD.square().sum(-1).mean()) + rounding / problem.clients,
        )
        votes_RMD = round_binary(w_RMD, torch.rand(w_RMD.shape, generator=random, dtype=w_RMD.dtype))
        w_RD = clip(votes_RMD.double().mean(1), problem.p_min)  # Lemma 5


def lemmas(problem: Problem, found: Moments) -> Sides:
    """Both sides of Lemmas 7, 8 and 9 in one round. Lemma 8 bounds from below: its sides change places."""
    L, M, tau, eta, noise = *_sizes(problem), problem.gradient_variance
    c1, c2 = problem.c1(eta), problem.c2
    curvature = (c2 * L * eta) ** 2 * tau * (tau - 1)
    below = c1**2 * eta * tau / 2 * found.gradient - c1**2 * eta / 4 * curvature * noise
    below -= eta * (c2**2 - c1**2) / M * found.opposed
    local = c1**2 * eta / (4 * M) * found.local_gradients
    change = (c2 * eta) ** 2 * tau / M * (found.local_gradients + noise) + found.rounding / M
    return {
        "Lemma 7": (found.divergence, (c2 * eta) ** 2 * tau * (found.local_gradients / M + noise)),
        "Lemma 8, as printed": (below + (2 - curvature) * local, found.descent),
        "Lemma 8": (below + (2 / c2**2 - curvature) * local, found.descent),
        "Lemma 9": (found.change, change),
    }


def theorem(problem: Problem, found: list[Moments]) -> tuple[float, float]:
    """Both sides of Theorem 1 after these rounds."""
    L, M, tau, eta = _sizes(problem)
    K, c1, c2 = len(found), problem.c1(eta), problem.c2
    left = c1**2 * sum(each.gradient for each in found) / K
    start = 2 * found[0].excess / (eta * tau * K)
    noise = c2**2 * L * eta * (1 / M + c1**2 * L * eta * (tau - 1) / 2) * problem.gradient_variance
    rounding = L / (eta * tau * K * M) * sum(each.rounding for each in found)
    opposed = 2 * (c2**2 - c1**2) / (tau * M * K) * sum(each.opposed for each in found)
    return left, start + noise + rounding + opposed


def _sizes(problem: Problem) -> tuple[float, int, int, float]:
    return problem.smoothness, problem.clients, problem.steps, problem.rate
