"""Randomised response (Warner, 1965) on binary votes: every vote is flipped with a fixed probability.

A client votes +1 with probability p. Flipped with probability f, its vote is +1 with probability f + (1 - 2 f) p: the
same as rounding (1 - 2 f) w in place of w = 2 p - 1. A client also moves no p by more than a bound, so that in one
round any two datasets differ by a known amount. See account.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from torch import Tensor

from fedvote.errors import ConfigError
from fedvote.privacy.privacy import Privacy


@dataclass(frozen=True)
class RandomisedResponse(Privacy):
    flip: float = 0.25  # f, the probability with which a vote is flipped
    move: float = 0.05  # largest change of a vote's probability of being +1, in one round and before it is flipped
    delta: float = 1e-5  # the chance with which more than epsilon is given away
    colluding: int = 0  # clients that work with the server: their votes hide nobody

    def __post_init__(self) -> None:
        if not 0 < self.flip < 0.5:
            raise ConfigError(f"flip is {self.flip}, expected a probability between 0 and 0.5")
        if not 0 < self.move <= 1:
            raise ConfigError(f"move is {self.move}, expected a number above 0, up to 1 (no bound)")
        if not 0 < self.delta < 1:
            raise ConfigError(f"delta is {self.delta}, expected a probability between 0 and 1, below 1 / clients")
        if self.colluding < 0:
            raise ConfigError(f"colluding is {self.colluding}, expected 0 or a number of clients")
        _accountant()  # or says how to install it, before anything is run

    @property
    def ends(self) -> tuple[float, float]:
        """The least probability of a vote +1, and the most that another dataset can make of it in one round."""
        return self.flip, min(self.flip + 2 * (1 - 2 * self.flip) * self.move, 1 - self.flip)

    def blur(self, w_KD: Tensor, start_D: Tensor) -> Tensor:
        bounded_KD = w_KD.clamp(start_D - 2 * self.move, start_D + 2 * self.move)

        # 2 (f + (1 - 2 f) p) - 1 = (1 - 2 f) (2 p - 1)
        return (1 - 2 * self.flip) * bounded_KD

    def correct(self, mean_D: Tensor) -> Tensor:
        return (mean_D / (1 - 2 * self.flip)).clamp(-1, 1)

    def account(self, rounds: Mapping[int, int], last: int, weights: int) -> dict[str, float]:
        epsilon, tallies = _accountant(), Counter[int]()
        for voters, count in rounds.items():
            tallies[self._honest(voters)] += count * weights
        return {
            "epsilon": epsilon({self._honest(last): weights}, self.ends, self.delta),
            "epsilon_in_all": epsilon(tallies, self.ends, self.delta),
            "delta": self.delta,
        }

    def _honest(self, voters: int) -> int:
        return max(1, voters - self.colluding)


def _accountant() -> Callable[[Mapping[int, int], tuple[float, float], float], float]:
    try:
        from fedvote.privacy.account import epsilon
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"randomised-response needs {error.name} to account for privacy: pip install 'fedvote[privacy]'"
        ) from error
    return epsilon
