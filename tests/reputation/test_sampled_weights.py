"""Which weights of a large layer the rule looks at: nobody can know of one that it never does."""

from __future__ import annotations

import torch

from fedvote.reputation.innovations import RUN, sampled

SIZE, MOST = 7 * RUN - 1, 3 * RUN  # the last run of neighbours would be one weight short


def test_every_weight_of_a_part_can_be_looked_at() -> None:
    seen_n = torch.zeros(SIZE, dtype=torch.bool)
    for seed in range(200):
        (place_n,) = sampled([slice(5, 5 + SIZE)], seed, MOST, torch.device("cpu"))
        assert len(place_n) == MOST == len(place_n.unique())
        seen_n[place_n - 5] = True
    assert int(seen_n.sum()) > 0.98 * SIZE  # the first and the last weight are seldom looked at
    assert bool(seen_n[:20].any()) and bool(seen_n[-20:].any())


def test_a_small_part_is_looked_at_as_a_whole() -> None:
    (place_n,) = sampled([slice(5, 5 + MOST)], 0, MOST, torch.device("cpu"))
    assert place_n.tolist() == list(range(5, 5 + MOST))
