"""A method's functions are functions: no argument is changed, and the same call gives the same bits."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fedvote.method import Method
from fedvote.randomness import Key
from tests.toy import Federation, assert_same, batches, copied, examples, keys, memory, merge

COHORT = (0, 2, 3)


def test_init_broadcast_and_models_change_nothing_and_repeat(federation: Federation) -> None:
    network, method = federation.network, federation.method
    voted, floats = network.start.voted.clone(), network.start.floats.clone()
    state = method.init(network, 5)
    assert_same(state, method.init(network, 5))
    before = copied(state)
    assert_same(method.broadcast(state), method.broadcast(state))
    for name, weights in method.models(state).items():
        again = method.models(state)[name]
        assert torch.equal(weights.voted, again.voted) and torch.equal(weights.floats, again.floats)
    assert_same(state, before)
    assert torch.equal(network.start.voted, voted) and torch.equal(network.start.floats, floats)


def test_local_changes_nothing_and_repeats(federation: Federation) -> None:
    network, method = federation.network, federation.method
    down = method.broadcast(federation.states([COHORT])[-1])
    data = examples()
    turn, remembered = batches(data, COHORT), memory(method, network, COHORT)
    arguments = {"x": data.x, "y": data.y, "index": turn.index_KSB, "samples": turn.samples_K}
    arguments |= {"voted": network.start.voted, "floats": network.start.floats}
    before, down_before, memory_before = copied(arguments), copied(down), copied(remembered)

    up, new = method.local(network, down, turn, remembered, keys(COHORT))
    kept_up, kept_new = copied(up), copied(new)
    again_up, again_new = method.local(network, down, turn, remembered, keys(COHORT))

    assert_same(up, again_up)
    assert_same(new, again_new)
    assert_same(up, kept_up)
    assert_same(new, kept_new)
    assert_same(arguments, before)
    assert_same(down, down_before)
    assert_same(remembered, memory_before)


def test_local_gives_every_client_a_message_and_a_memory(federation: Federation) -> None:
    network, method = federation.network, federation.method
    down = method.broadcast(federation.start())
    remembered = memory(method, network, COHORT)
    up, new = method.local(network, down, batches(examples(), COHORT), remembered, keys(COHORT))
    assert up.keys() == method.wire(network).up(down, Key(0, 1, 0)).keys()
    assert all(len(value) == len(COHORT) and not value.requires_grad for value in up.values())
    assert {n: (v.shape, v.dtype) for n, v in new.items()} == {n: (v.shape, v.dtype) for n, v in remembered.items()}


def test_merge_changes_nothing_and_repeats(federation: Federation) -> None:
    network, method = federation.network, federation.method
    state = federation.states([COHORT])[-1]
    down = method.broadcast(state)
    up, _ = method.local(network, down, batches(examples(), COHORT), memory(method, network, COHORT), keys(COHORT))
    state_before, up_before = copied(state), copied(up)

    merged = merge(method, state, up, COHORT, Key(0, 2))
    kept = copied(merged)

    assert_same(merged, merge(method, state, up, COHORT, Key(0, 2)))
    assert_same(merged, kept)
    assert_same(state, state_before)
    assert_same(up, up_before)


def test_nothing_but_the_key_is_random(federation: Federation) -> None:
    cohorts = [range(5), COHORT, (1, 4)]
    torch.manual_seed(1)
    first = federation.states(cohorts)
    torch.manual_seed(2)
    for a, b in zip(first, federation.states(cohorts), strict=True):
        assert_same(a, b)


@pytest.mark.parametrize("round", [1, 2])
def test_the_global_generator_is_left_alone(method: Method, round: int) -> None:
    federation = replace(Federation(method), seed=7)
    torch.manual_seed(3)
    before = torch.get_rng_state()
    federation.round(federation.start(), round, COHORT)
    assert torch.equal(torch.get_rng_state(), before)
