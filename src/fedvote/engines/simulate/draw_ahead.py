"""Draw the next round's batches while a GPU is still busy with this round."""

from __future__ import annotations

from collections.abc import Callable

from fedvote.federation import Orders


class DrawAhead:
    """The orders of a round, drawn in advance or on demand, with the same result."""

    def __init__(self, draw: Callable[[int], Orders], until: int):
        """`until`: the last round to draw."""
        self._draw, self._until = draw, until
        self._round = -1
        self._orders: Orders = {}

    def of(self, round: int) -> Orders:
        if self._round != round:
            self._round, self._orders = round, self._draw(round)
        return self._orders

    def prepare(self, round: int) -> None:
        """Draw a round's orders in advance."""
        if round <= self._until:
            self.of(round)
