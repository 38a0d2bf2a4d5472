"""The server's state knows which broadcast each client has, and keeps as many as it should."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from fedvote.core import State
from fedvote.errors import WireError
from fedvote.rounds import held
from tests.toy import assert_same


def level(round: int, levels: int = 3, count: int = 21) -> Tensor:
    return (torch.arange(count) * round % levels).to(torch.int16)


def broadcast(round: int) -> dict[str, Tensor]:
    return {
        "level": level(round),
        "levels": torch.tensor([2], dtype=torch.int16),
        "float": torch.full((3,), 0.5 * round),
    }


def states(kept: int, cohorts: list[list[int]], clients: int = 6) -> list[State]:
    """The states after rounds with these cohorts."""
    found = [held.nobody(clients)]
    for round, cohort in enumerate(cohorts, start=1):
        found.append(held.after(found[-1], broadcast(round), round, cohort, kept))
    return found


COHORTS = [[0, 1], [2, 3], [0, 4], [1, 2], [5], [0]]


@pytest.mark.parametrize("kept", [1, 2, 4, 9, 10**20])
def test_the_last_broadcasts_are_kept_and_clients_of_older_ones_have_none(kept: int) -> None:
    for number, state in enumerate(states(kept, COHORTS)[1:], start=1):
        assert_same(held.last(state), broadcast(number))
        for round in range(1, number):
            assert_same(held.earlier(state, round), broadcast(round) if round > number - kept else {})
        last = {client: round for round, cohort in enumerate(COHORTS[:number], start=1) for client in cohort}
        assert held.holders(state) == {client: round for client, round in last.items() if round > number - kept}


def test_a_state_without_holders_has_the_last_broadcast_alone() -> None:
    state = held.after({"level": level(1)}, broadcast(2), 2, [0], kept=5)
    assert state.keys() == {"held/level", "held/levels", "held/float"} and held.holders(state) == {}


def test_earlier_broadcasts_of_few_levels_take_two_bits_a_weight() -> None:
    state = states(3, COHORTS)[-1]
    packed = state["held-earlier/5/level"]
    assert packed.dtype == torch.uint8 and len(packed) == 1 + 2 * -(-len(level(5)) // 8)  # two planes


@given(st.lists(st.integers(-2, 32767), max_size=40), st.sampled_from([torch.int16, torch.int64]))
def test_any_numbers_are_unpacked_as_they_were(values: list[int], dtype: torch.dtype) -> None:
    x = torch.tensor(values, dtype=dtype)
    back = held.unpacked(held.packed(x), x)
    assert back.dtype == dtype and torch.equal(back, x)


@pytest.mark.parametrize("shape", [(), (2, 3), (0,), (2, 0)])
def test_tensors_that_are_no_vectors_stay_as_they_are(shape: tuple[int, ...]) -> None:
    x = torch.ones(shape, dtype=torch.int16)
    assert held.unpacked(held.packed(x), x) is x


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("held-earlier/9/level", torch.zeros(6, dtype=torch.uint8)),  # a round to come
        ("held-earlier/x/level", torch.zeros(6, dtype=torch.uint8)),
        ("held-earlier/5/other", torch.zeros(6, dtype=torch.uint8)),
        ("held-earlier/5/level", torch.zeros(7, dtype=torch.uint8)),
        ("held-earlier/5/level", torch.zeros(6)),
        ("held-round", torch.tensor([7, 0, 0, 0, 0, 0])),
        ("held-round", torch.tensor([-1, 0, 0, 0, 0, 0])),
    ],
)
def test_a_state_that_no_rounds_can_have_made_is_refused(name: str, value: Tensor) -> None:
    state = states(3, COHORTS)[-1]
    for found, round in zip(held.checked(state, 6), (4, 5), strict=True):
        assert_same(found, broadcast(round))
    with pytest.raises((ValueError, WireError)):
        list(held.checked(state | {name: value}, 6))


def test_an_earlier_broadcast_that_lacks_a_tensor_is_refused() -> None:
    state = states(3, COHORTS)[-1]
    del state["held-earlier/5/levels"]
    with pytest.raises(ValueError, match="it lacks held-earlier/5/levels"):
        list(held.checked(state, 6))
