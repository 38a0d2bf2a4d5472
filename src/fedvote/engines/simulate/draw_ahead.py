"""What a round draws, found while a GPU is still busy with the round before."""

from __future__ import annotations

from collections.abc import Callable

from fedvote.federation import Orders


class DrawAhead:
    """The orders of a round, which were drawn before it began, or are drawn now; they are the same."""

    def __init__(self, draw: Callable[[int], Orders], until: int):
        """`until`: the last round, after which nothing is drawn."""
        self._draw, self._until = draw, until
        self._round = -1
        self._orders: Orders = {}

    def of(self, round: int) -> Orders:
        if self._round != round:
            self._round, self._orders = round, self._draw(round)
        return self._orders

    def prepare(self, round: int) -> None:
        """Draw a round's, to have them later."""
        if round <= self._until:
            self.of(round)
