"""The packed ballots of an open round, for rules that compare them: in memory, or on disk where they are many."""

from __future__ import annotations

import tempfile

import numpy as np
import torch
from torch import Tensor

from fedvote.packed import Alphabet, Packed, plain

FIRST = 64  # ballots for which room is made at the beginning; it doubles
IN_MEMORY = 2**29
"""Largest shelf in memory, in bytes; a larger one moves to a file as a whole."""


class Shelf:
    """Ballots in the order of their arrival. `ballots` puts them in the order of their clients, in place."""

    def __init__(self, count: int, alphabet: Alphabet, in_memory: int = IN_MEMORY):
        self.count, self.alphabet, self.in_memory = count, alphabet, in_memory
        self.clients: list[int] = []
        self._words = self._room(FIRST)

    def add(self, ballots: Packed, clients: list[int]) -> None:
        """Keep a stack of ballots; they are copied."""
        for row_PW, client in zip(ballots.words_KPW, clients, strict=True):
            if (kept := len(self.clients)) == len(self._words):
                smaller, self._words = self._words, self._room(2 * kept)
                plain.copy(self._words[:kept], smaller)
            plain.copy(self._words[kept], row_PW)
            self.clients.append(client)

    def ballots(self) -> tuple[Packed, list[int]]:
        """All ballots, and their clients in ascending order."""
        self._move(sorted(range(len(self.clients)), key=self.clients.__getitem__))
        self.clients.sort()
        return Packed(self._words[: len(self.clients)], self.count, self.alphabet), list(self.clients)

    def _move(self, order: list[int]) -> None:
        """Replace each row k by row order[k]: along every cycle, with room for a single row."""
        moved = [k == place for k, place in enumerate(order)]
        for start in range(len(order)):
            if moved[start]:
                continue
            first_PW, k = self._words[start].clone(), start
            while (place := order[k]) != start:
                plain.copy(self._words[k], self._words[place])
                moved[k], k = True, place
            plain.copy(self._words[k], first_PW)
            moved[k] = True

    def _room(self, ballots: int) -> Tensor:
        """Room for this many ballots. Memory that is not written to yet is not used yet."""
        shape = (ballots, len(self.alphabet) - 1, -(-self.count // 64))
        if 8 * ballots * shape[1] * shape[2] <= self.in_memory:
            return plain.empty(shape, torch.int64, torch.device("cpu"))
        with tempfile.TemporaryFile() as file:  # it has no name, and is gone with the last array that uses it
            return torch.from_numpy(np.memmap(file, np.int64, "w+", shape=shape))
