"""Packed ballots on a shelf come back in the order of their clients, from memory and from disk."""

from __future__ import annotations

import pytest
import torch

from fedvote.packed import pack, unpack, votes_at
from fedvote.packed.shelf import FIRST, Shelf
from fedvote.quantize import BINARY, TERNARY, Alphabet
from fedvote.randomness import Key


@pytest.mark.parametrize("alphabet", [BINARY, TERNARY])
@pytest.mark.parametrize("in_memory", [2**20, 0, 8 * FIRST])
@pytest.mark.parametrize("count", [1, 64, 131])
def test_ballots_come_back_in_the_order_of_clients(alphabet: Alphabet, in_memory: int, count: int) -> None:
    K = FIRST + 3
    drawn = torch.randint(len(alphabet), (K, count), generator=Key(0).torch("votes"))
    votes_KD = torch.tensor(alphabet, dtype=torch.int8)[drawn]
    order = torch.randperm(K, generator=Key(1).torch("order")).tolist()
    shelf = Shelf(count, alphabet, in_memory)
    for clients in (order[:1], order[1:60], order[60:]):
        shelf.add(pack(votes_KD[clients], alphabet), clients)
    ballots, clients = shelf.ballots()
    assert clients == list(range(K)) and torch.equal(unpack(ballots), votes_KD)
    places = torch.tensor([0, count - 1, count // 2, 0])
    assert torch.equal(votes_at(ballots, places), votes_KD[:, places])
    assert torch.equal(unpack(ballots.row(5)), votes_KD[5:6])
