"""Parts of a round that hold tensors can be compared, looked up in lists, and kept in sets."""

from __future__ import annotations

import copy

import pytest
import torch

from fedvote.attacks.attack import Seen
from fedvote.core import Weights
from fedvote.reputation import Verdict
from fedvote.rounds.round import Closed
from fedvote.rounds.snapshot import Snapshot

TENSOR = torch.arange(3.0)


@pytest.mark.parametrize(
    "part",
    [
        Snapshot(1, {"p": TENSOR}, {}),
        Weights(TENSOR, TENSOR),
        Verdict(TENSOR, TENSOR, {}),
        Seen({"votes": TENSOR}),
        Closed({"p": TENSOR}, []),
    ],
    ids=lambda part: type(part).__name__,
)
def test_what_holds_tensors_equals_itself_alone(part: object) -> None:
    other = copy.deepcopy(part)
    assert part == part and part != other and part in [other, part] and len({part, other}) == 2
