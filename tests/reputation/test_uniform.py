"""Option I: one client, one vote, and nothing is remembered."""

from __future__ import annotations

import torch

from fedvote.quantize import BINARY
from fedvote.randomness import Key
from fedvote.reputation import Ballots, Uniform


def test_every_ballot_weighs_one() -> None:
    votes = torch.tensor([[1, 1, 1], [-1, -1, -1]], dtype=torch.int8)
    verdict = Uniform().judge({}, Ballots(votes, torch.tensor([4, 7]), torch.zeros(3), BINARY), Key(0, 1))
    assert verdict.soft_K.tolist() == verdict.hard_K.tolist() == [1, 1]
    assert verdict.memory == {} == Uniform().init(9)
