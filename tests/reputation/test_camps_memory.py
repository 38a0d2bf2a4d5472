"""Judging a round takes little memory beside the votes that are looked at, also in a network of many layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import ref

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fedvote.randomness import Key
from fedvote.reputation import Camps
from fedvote.reputation.layer_pairs import MOST_CLIENTS
from tests.reputation.cast_ballots import ballots, cast

LAYERS, SIZE = 16, 32
SMALL = 2**14  # bytes: less than any matrix of all pairs
MATRICES = 16  # of all pairs, in float64, at a time


class LiveTensors(TorchDispatchMode):
    """The most bytes that tensors made in the block take at a time, without small ones."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.most, self._made = 0, list[ref[Tensor]]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        new = [value for value in tree_leaves(made) if isinstance(value, Tensor)]
        if large := [ref(value) for value in new if value.untyped_storage().nbytes() > SMALL]:
            self._made = [one for one in self._made if one() is not None] + large
            storages = {each.data_ptr(): each.nbytes() for each in self._storages()}
            self.most = max(self.most, sum(storages.values()))
        return made

    def _storages(self) -> Iterator[torch.UntypedStorage]:
        for one in self._made:
            if (value := one()) is not None:
                yield value.untyped_storage()


@pytest.mark.parametrize("clients", [MOST_CLIENTS, 200])
def test_a_pair_of_clients_takes_two_bytes_a_layer_and_a_fixed_number_of_matrices(clients: int) -> None:
    """Not two matrices of float64 for each layer, of which a thousand clients and eight layers would have 128 MB.

    Of few clients, the agreement in each layer is remembered as well.
    """
    layers = (SIZE,) * LAYERS
    votes_KD, rule = cast(range(clients), 1)[:, : sum(layers)], Camps()
    memory, round = rule.init(clients), ballots(votes_KD, range(clients), layers=layers)
    with LiveTensors() as live:
        rule.judge(memory, round, Key(0, 1))
    jumps_and_roundings = (4 + 1) * clients * sum(layers)
    remembered = memory["agreed_by_layer"].nbytes
    assert live.most < jumps_and_roundings + remembered + clients**2 * (2 * LAYERS + 8 * MATRICES)
