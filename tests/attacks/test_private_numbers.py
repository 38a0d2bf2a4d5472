"""Hostile clients know their own random numbers: not the run's secret, and no honest client's numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
import torch

from fedvote.attacks import Attack, Seen
from fedvote.core import Message
from fedvote.engines.simulate import simulate
from fedvote.randomness import Key, shared_random
from tests.toy import dataset, module


@dataclass(frozen=True)
class Spy(Attack):
    """Notes the keys that it is given."""

    keys: list[Sequence[Key]] = field(default_factory=list)

    def tamper(self, seen: Seen) -> Message:
        self.keys.append(seen.keys)
        return seen.own


def test_hostile_clients_have_their_own_secrets_and_cannot_draw_the_numbers_of_others() -> None:
    spy = Spy()
    simulation = simulate(
        module(), dataset(), clients=5, rounds=1, steps=1, batch=8, attack=spy, hostile=2, device="cpu"
    )  # fmt: skip
    list(simulation)
    (keys,), federation = spy.keys, simulation.federation
    assert [key.client for key in keys] == list(federation.hostile)
    assert all(key == federation.key(1, key.client) and key.secret != federation.secret for key in keys)
    for honest in set(range(5)) - set(federation.hostile):
        theirs = shared_random(federation.key(1, honest), 50)
        for key in keys:
            with pytest.raises(ValueError, match=f"no secret of client {honest}"):
                key.of(honest)
            for guess in (Key(key.seed, key.round, honest), Key(key.seed, key.round, honest, key.secret)):
                assert not torch.equal(shared_random(guess, 50), theirs)
