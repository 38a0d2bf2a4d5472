"""Coded votes are the votes, near their entropy where votes are as expected, and never much longer than plain ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fedvote.codecs import EntropyVotes
from fedvote.codecs.entropy import CODED, OWN_SHARES, PLAIN
from fedvote.errors import WireError
from fedvote.quantize import BINARY, TERNARY, Alphabet
from fedvote.randomness import Key
from tests.codecs.entropy_cases import (
    assert_round_trip,
    coder,
    coder_of_one,
    drawn_as,
    every_alphabet,
    implied,
    plain,
    random_context,
    votes_of,
)


@given(
    alphabet=st.sampled_from([BINARY, TERNARY]),
    contexts=st.sampled_from([1, 2, 3, 7, 256]),
    sizes=st.lists(st.integers(0, 9) | st.integers(60, 70), max_size=6),
    noise=st.sampled_from([0.0, 0.1, 1.0]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None)
def test_any_ballot_survives(alphabet: Alphabet, contexts: int, sizes: list[int], noise: float, seed: int) -> None:
    """Contexts that are empty, or of a few votes, or of 64 and about; votes that are alike, or nearly so, or random."""
    rng = Key(seed).numpy("ballot")
    context = rng.permutation(np.repeat(rng.integers(contexts, size=len(sizes)), sizes))
    digits = np.where(
        rng.random(len(context)) < noise, rng.integers(len(alphabet), size=len(context)), rng.integers(len(alphabet))
    )
    assert_round_trip(
        coder(alphabet, torch.from_numpy(context), contexts), votes_of(alphabet, torch.from_numpy(digits))
    )


@every_alphabet
@pytest.mark.parametrize("count", [*range(18), 63, 64, 65, 71, 1003])
@pytest.mark.parametrize("contexts", [1, 2, 256])
def test_every_length_survives(alphabet: Alphabet, count: int, contexts: int) -> None:
    context = random_context(count, contexts)
    for seed in range(3):
        random = torch.randint(len(alphabet), (count,), generator=Key(seed).torch("digits"))
        assert_round_trip(coder(alphabet, context, contexts), votes_of(alphabet, random))


@every_alphabet
@pytest.mark.parametrize("contexts", [1, 2, 5, 256])
@pytest.mark.parametrize("count", [40, 3001, 50_000])
def test_votes_that_are_all_equal_survive_and_large_contexts_of_them_cost_only_the_table(
    alphabet: Alphabet, contexts: int, count: int
) -> None:
    context = random_context(count, contexts)
    for digit in range(len(alphabet)):
        payload = assert_round_trip(coder(alphabet, context, contexts), votes_of(alphabet, [digit] * count))
        if count == 50_000:
            assert len(payload) <= 1 + 2 * (len(alphabet) - 1) * contexts + 16


@every_alphabet
@pytest.mark.parametrize("contexts", [2, 5, 256])
@pytest.mark.parametrize("count", [1, 30, 3001, 50_000])
def test_votes_against_all_expectation_survive_and_are_no_longer_than_plain_ones(
    alphabet: Alphabet, contexts: int, count: int
) -> None:
    """Where the soft vote says that nobody votes -1, all do, and the other way round."""
    context = random_context(count, contexts)
    expected = implied(alphabet, contexts)
    codec = EntropyVotes(alphabet, context, expected)
    unlikeliest = votes_of(alphabet, expected.argmin(1)[context.long().numpy()].tolist())
    assert_round_trip(codec, unlikeliest)
    assert_round_trip(codec, drawn_as(expected[::-1].copy(), context, alphabet))


@every_alphabet
def test_floats_that_are_votes_are_votes(alphabet: Alphabet) -> None:
    assert_round_trip(coder(alphabet, [0, 1, 0], 2), torch.tensor([1.0, -1.0, 1.0]))


def table_bits(codec: EntropyVotes) -> int:
    large = int((torch.bincount(codec.context.long()) >= OWN_SHARES).sum())
    return 16 * large * (len(codec.alphabet) - 1)


@every_alphabet
@pytest.mark.parametrize("contexts", [4, 17, 256])
def test_votes_as_expected_cost_their_entropy(alphabet: Alphabet, contexts: int) -> None:
    context = random_context(200_000, contexts)
    codec = coder(alphabet, context, contexts)
    x = drawn_as(codec.expected, context, alphabet)
    digit = torch.searchsorted(torch.tensor(alphabet, dtype=torch.int8), x)
    each = codec.expected[context.long().numpy(), digit.numpy()]
    bound = float(-np.log2(each).sum())
    bits = 8 * len(assert_round_trip(codec, x))
    assert 0.98 * bound <= bits - table_bits(codec) <= 1.02 * bound


@every_alphabet
def test_the_table_pays_for_itself_where_votes_are_not_as_expected(alphabet: Alphabet) -> None:
    """Expected evenly, but nine in ten are +1: by the shares sent, 0.47 bits a vote."""
    V = len(alphabet)
    context = torch.zeros(200_000, dtype=torch.int16)
    even = np.full((1, V), 1 / V)
    really = np.array([[0.1, 0.9]]) if V == 2 else np.array([[0.05, 0.05, 0.9]])
    x = drawn_as(really, context, alphabet)
    entropy = float(-(really * np.log2(really)).sum())
    bits = 8 * len(assert_round_trip(EntropyVotes(alphabet, context, even), x))
    assert 0.98 * entropy <= bits / 200_000 <= 1.02 * entropy


@every_alphabet
@pytest.mark.parametrize("contexts", [1, 3, 256])
@pytest.mark.parametrize("kind", ["even", "against", "halves", "unlikeliest", "alternating"])
def test_no_votes_cost_more_than_plain_ones(alphabet: Alphabet, contexts: int, kind: str) -> None:
    context = random_context(200_000, contexts)
    codec, V = coder(alphabet, context, contexts), len(alphabet)
    position = torch.arange(200_000)
    x = {
        "even": lambda: votes_of(alphabet, torch.randint(V, (200_000,), generator=Key(0).torch("even"))),
        "against": lambda: drawn_as(codec.expected[::-1].copy(), context, alphabet),
        "halves": lambda: votes_of(alphabet, position * V // 200_000),
        "unlikeliest": lambda: votes_of(alphabet, codec.expected.argmin(1)[context.long().numpy()].tolist()),
        "alternating": lambda: votes_of(alphabet, position % V),
    }[kind]()
    bits = 8 * len(assert_round_trip(codec, x))
    assert bits <= (1.01 if V == 2 else 1.605) * 200_000 and bits <= 8 * (1 + len(plain(alphabet, 200_000).encode(x)))


@every_alphabet
def test_a_context_sends_its_own_shares_from_64_votes_on(alphabet: Alphabet) -> None:
    """All votes are +1, which was not expected: 64 of them cost a table, 63 as much as plain votes."""
    V = len(alphabet)
    few, enough = (coder_of_one(alphabet, count) for count in (63, 64))
    payload = assert_round_trip(enough, votes_of(alphabet, [V - 1] * 64))
    table = np.array([1] * (V - 2) + [65536 - V + 1], "<u2").tobytes()
    assert payload.startswith(CODED + table) and len(payload) <= 1 + len(table) + 4
    votes = votes_of(alphabet, [V - 1] * 63)
    assert len(assert_round_trip(few, votes)) == 1 + len(plain(alphabet, 63).encode(votes))


def test_the_bytes_are_as_documented() -> None:
    """Four votes of one context are one symbol of 256, filled up with the likelier value, or the first."""
    codec = coder_of_one(BINARY, 4)
    assert codec.encode(torch.tensor([1, -1, 1, 1])) == PLAIN + bytes([0b10110000])
    with pytest.raises(WireError, match="coded votes where plain ones take fewer bytes"):
        codec.decode(CODED + bytes([0, 0, 0b10110000, 0]))  # the same votes: times 2^16, of 2^24
    assert codec.encode(torch.tensor([-1, -1, -1, -1])) == CODED


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@every_alphabet
@pytest.mark.parametrize("count", [0, 1, 11, 3000])
def test_a_gpu_makes_and_reads_the_same_bytes(alphabet: Alphabet, count: int) -> None:
    context = random_context(count, 9)
    here, there = (EntropyVotes(alphabet, context.to(device), implied(alphabet, 9)) for device in ("cpu", "cuda"))
    x = drawn_as(here.expected, context, alphabet)
    payload = here.encode(x)
    assert there.encode(x.cuda()) == payload
    assert torch.equal(there.decode(payload, "cuda").cpu(), x)
