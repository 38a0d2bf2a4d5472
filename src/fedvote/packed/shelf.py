"""The packed ballots of an open round, for rules that compare them: in memory, or on disk where they are many."""

from __future__ import annotations

import tempfile

import numpy as np
import torch
from torch import Tensor

from fedvote.packed import Alphabet, Packed, plain

BLOCK = 64  # ballots for which room is made at once
IN_MEMORY = 2**29  # bytes of ballots; what exceeds them is on disk


class Shelf:
    """Ballots in the order of their arrival. `ballots` gives them in the order of their clients."""

    def __init__(self, count: int, alphabet: Alphabet, in_memory: int = IN_MEMORY):
        self.count, self.alphabet, self.in_memory = count, alphabet, in_memory
        self.clients: list[int] = []
        self._rows: list[Tensor] = []  # each ballot's words
        self._free: list[Tensor] = []  # room for the next ballots

    def add(self, ballots: Packed, clients: list[int]) -> None:
        """Keep a stack of ballots; they are copied."""
        for row_PW, client in zip(ballots.words_KPW, clients, strict=True):
            if not self._free:
                self._free = list(self._room(BLOCK, len(self.clients)).unbind())
            self._rows.append(self._free.pop())
            plain.copy(self._rows[-1], row_PW)
            self.clients.append(client)

    def ballots(self) -> tuple[Packed, list[int]]:
        """All ballots, and their clients in ascending order."""
        order = sorted(range(len(self.clients)), key=self.clients.__getitem__)
        words_KPW = self._room(len(order), len(order))
        for row, place in enumerate(order):
            plain.copy(words_KPW[row], self._rows[place])
        self.clients, self._rows, self._free = [self.clients[place] for place in order], list(words_KPW.unbind()), []
        return Packed(words_KPW, self.count, self.alphabet), list(self.clients)

    def _room(self, ballots: int, before: int) -> Tensor:
        """Room for this many ballots, if there are so many before them."""
        shape = (ballots, len(self.alphabet) - 1, -(-self.count // 64))
        if 8 * (before + ballots) * shape[1] * shape[2] <= self.in_memory:
            return plain.empty(shape, torch.int64, torch.device("cpu"))
        with tempfile.TemporaryFile() as file:  # it has no name, and is gone with the last array that uses it
            return torch.from_numpy(np.memmap(file, np.int64, "w+", shape=shape))
