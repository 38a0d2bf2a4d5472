"""Stacks of any size train the same; cohorts follow from seed and round; clients remember between their turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from fedvote import FedAvg, FedVote, federation
from fedvote.core import Batches, Message, State
from fedvote.data.batches import draw_batches
from fedvote.federation import Federation
from fedvote.methods import fedvote
from fedvote.network.network import Network
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key
from tests.engines.simulated import Counting, simulated
from tests.toy import assert_close


@pytest.mark.parametrize("stack", [1, 2, 3, 99])
def test_stacks_of_any_size_train_the_same_float_weights(stack: int) -> None:
    for a, b in zip(simulated(FedAvg(lr=0.01)).run(), simulated(FedAvg(lr=0.01), stack=stack).run(), strict=True):
        assert_close(a.state, b.state)
        assert a.record["clients"] == b.record["clients"] and a.record["uplink_bytes"] == b.record["uplink_bytes"]


@pytest.mark.parametrize("stack", [1, 2, 3])
def test_stacks_of_any_size_train_the_same_latent_weights(stack: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What clients round is the same to rounding error, and so they cast the same votes."""

    def normalised(size: int) -> tuple[Tensor, Tensor]:
        seen: list[Tensor] = []
        voted: list[Tensor] = []

        def spy(w_KD: Tensor, *rest: Any) -> Tensor:
            seen.append(w_KD)
            voted.append(round_by_shared_random(w_KD, *rest))
            return voted[-1]

        with monkeypatch.context() as patch:
            patch.setattr(fedvote, "round_by_shared_random", spy)
            (_,) = simulated(stack=size, rounds=1, steps=10).run()
        return torch.cat(seen), torch.cat(voted)

    (whole_KD, votes_KD), (parts_KD, parts_votes_KD) = normalised(0), normalised(stack)
    assert whole_KD.shape == (5, 72)
    torch.testing.assert_close(parts_KD, whole_KD, rtol=1e-3, atol=1e-4)
    assert torch.equal(parts_votes_KD, votes_KD)


@pytest.mark.parametrize("room", [2, 1])
def test_attackers_that_do_not_train_have_the_stacks_of_others(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    local, turns = FedVote.local, list[tuple[int, bool]]()

    def spy(self: FedVote, network: Network, down: Message, batches: Batches, *rest: Any) -> tuple[Message, State]:
        if batches.clients > room:
            raise torch.OutOfMemoryError
        turns.append((batches.clients, bool(batches.steps)))
        return local(self, network, down, batches, *rest)

    (at_once,) = simulated(attack="omniscient", hostile=3, rounds=1).run()
    monkeypatch.setattr(FedVote, "local", spy)
    (in_parts,) = simulated(attack="omniscient", hostile=3, rounds=1, stack=2).run()
    assert turns == ([(2, True), (2, False), (1, False)] if room == 2 else [(1, True)] * 2 + [(1, False)] * 3)
    assert_close(in_parts.state, at_once.state)


@pytest.mark.parametrize("options", [{}, {"epochs": 0.7}, {"hostile": 2, "oracle": True}, {"stack": 1}], ids=str)
def test_what_is_drawn_a_round_ahead_is_what_the_round_would_draw(
    options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = simulated(FedAvg(), cohort=3, **options)
    drawn: list[tuple[int, int]] = []

    def spy(train: Any, owned: Any, steps: Any, batch: int, keys: Sequence[Key], orders: Any) -> Batches:
        own, ahead = (draw_batches(train, owned, steps, batch, keys, given) for given in (None, orders))
        assert len(orders) == len(keys) and torch.equal(own.index_KSB, ahead.index_KSB)
        drawn.extend((key.round, key.client) for key in keys)
        return ahead

    monkeypatch.setattr(federation, "draw_batches", spy)
    cohorts = [snapshot.record["clients"] for snapshot in made.run()]
    assert drawn == [(round, client) for round, cohort in enumerate(cohorts, 1) for client in cohort]


def test_nothing_is_drawn_twice_or_for_a_round_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds: list[int] = []
    orders = Federation.orders

    def spy(self: Federation, round: int) -> Any:
        rounds.append(round)
        return orders(self, round)

    monkeypatch.setattr(Federation, "orders", spy)
    made = simulated(FedAvg(), cohort=3, stack=1)
    first, *_ = made.run()
    assert rounds == [1, 2, 3]
    list(made.run(first))
    assert rounds == [1, 2, 3, 2, 3]


def test_a_cohort_is_drawn_by_seed_and_round_and_everybody_is_drawn_sooner_or_later() -> None:
    cohorts = [s.record["clients"] for s in simulated(FedAvg(), cohort=2, rounds=30, steps=1).run()]
    for cohort in cohorts:
        assert len(set(cohort)) == 2 and cohort == sorted(cohort)
    counts = Counter(client for cohort in cohorts for client in cohort)
    assert counts.keys() == {0, 1, 2, 3, 4} and min(counts.values()) >= 4  # of 12 on average

    again = [s.record["clients"] for s in simulated(FedVote(), cohort=2, rounds=3, steps=2, stack=1).run()]
    assert again == cohorts[:3], "what clients do has no part in who is drawn"
    other = [s.record["clients"] for s in simulated(FedVote(), cohort=2, rounds=30, steps=1, seed=1).run()]
    assert other != cohorts


def test_without_a_cohort_everybody_takes_part() -> None:
    assert [s.record["clients"] for s in simulated(rounds=2).run()] == [[0, 1, 2, 3, 4]] * 2


@pytest.mark.parametrize("stack", [0, 2])
def test_clients_remember_through_partial_participation(stack: int) -> None:
    times, last = [0] * 5, [-1] * 5
    made = simulated(Counting(), cohort=3, rounds=6, steps=1, stack=stack)
    assert made.federation.start().memory["times"].tolist() == [[0]] * 5
    for snapshot in made.run():
        for client in snapshot.record["clients"]:
            times[client] += 1
            last[client] = snapshot.round
        assert snapshot.memory["times"][:, 0].tolist() == times
        assert snapshot.memory["last"].tolist() == last
    assert len(set(times)) > 1


@pytest.mark.filterwarnings("ignore:client 3 has 4 examples, fewer")
def test_epochs_are_passes_over_a_clients_own_examples() -> None:
    uneven = [torch.arange(a, b) for a, b in ((0, 8), (8, 40), (40, 80), (80, 84), (84, 200))]
    made = simulated(FedAvg(), epochs=2.0, owned=uneven)
    assert made.federation.steps([len(rows) for rows in made.federation.owned]) == [2, 8, 10, 1, 29]
    assert made.federation.steps([10, 11, 1]) == [2, 3, 1]  # of 2.5, 2.75 and 0.25 batches of 8
    alone = simulated(FedAvg(), epochs=2.0, owned=uneven, stack=1)
    for a, b in zip(made.run(), alone.run(), strict=True):
        assert_close(a.state, b.state)
    by_steps = next(simulated(FedAvg(), owned=uneven).run())
    assert not torch.equal(by_steps.state["voted"], next(made.run()).state["voted"])
