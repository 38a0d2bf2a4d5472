"""Coded votes are the votes, whatever they are; near the entropy where votes are as expected; and never much longer
than plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from fedvote import FedVote
from fedvote.codecs import Binary, EntropyVotes, Ternary
from fedvote.codecs.entropy import CODED, OWN_SHARES, PLAIN
from fedvote.core import NO_VOTE, Codec
from fedvote.errors import ConfigError, UnwritableError, WireError
from fedvote.methods.fedvote import Votes
from fedvote.network.network import Network
from fedvote.quantize import BINARY, TERNARY, Alphabet
from fedvote.randomness import Key
from fedvote.reputation import Proportional, Reputation, Uniform
from fedvote.rounds import HELD, Round
from tests.toy import CLASSES, CLIENTS, FEATURES, Federation, assert_same, open_round

ALPHABETS = {"binary": BINARY, "ternary": TERNARY}
every_alphabet = pytest.mark.parametrize("alphabet", ALPHABETS.values(), ids=ALPHABETS)


def implied(alphabet: Alphabet, contexts: int) -> npt.NDArray[np.float64]:
    """(C, V) the shares of votes that soft votes from -1 to 1 imply, as in the method."""
    soft_C = np.linspace(-1, 1, contexts)
    if alphabet == BINARY:
        return np.stack([1 - soft_C, 1 + soft_C], 1) / 2
    return np.stack([np.maximum(-soft_C, 0), 1 - abs(soft_C), np.maximum(soft_C, 0)], 1)


def coder(alphabet: Alphabet, context: Sequence[int] | Tensor, contexts: int) -> EntropyVotes:
    return EntropyVotes(alphabet, torch.as_tensor(context, dtype=torch.int16), implied(alphabet, contexts))


def plain(alphabet: Alphabet, count: int) -> Codec:
    return Binary(count) if alphabet == BINARY else Ternary(count)


def votes_of(alphabet: Alphabet, digits: Sequence[int] | Tensor) -> Tensor:
    return torch.tensor(alphabet, dtype=torch.int8)[torch.as_tensor(digits, dtype=torch.int64)]


def drawn_as(expected_CV: npt.NDArray[np.float64], context: Tensor, alphabet: Alphabet, seed: int = 0) -> Tensor:
    """Votes as `expected_CV` has it."""
    uniform = torch.rand(len(context), 1, generator=Key(seed).torch("votes"), dtype=torch.float64)
    return votes_of(alphabet, (uniform >= torch.from_numpy(expected_CV.cumsum(1)[:, :-1])[context.long()]).sum(1))


def random_context(count: int, contexts: int, seed: int = 0) -> Tensor:
    return torch.randint(contexts, (count,), generator=Key(seed).torch("context"), dtype=torch.int16)


def assert_round_trip(codec: EntropyVotes, x: Tensor) -> bytes:
    payload = codec.encode(x)
    assert isinstance(payload, bytes)
    assert len(payload) <= 1 + len(plain(codec.alphabet, codec.count).encode(x))
    for reader in (codec, replace(codec)):  # the receiver has what the sender has, but made it itself
        back = reader.decode(payload)
        assert back.dtype == torch.int8 and torch.equal(back, x.to(torch.int8))
    back += 1  # what comes back is the receiver's to change
    return payload


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


# Length


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


def coder_of_one(alphabet: Alphabet, count: int) -> EntropyVotes:
    """One context, in which all values are equally likely."""
    V = len(alphabet)
    return EntropyVotes(alphabet, torch.zeros(count, dtype=torch.int16), np.full((1, V), 1 / V))


def test_the_bytes_are_as_documented() -> None:
    """Four votes of one context are one symbol of 256, filled up with the likelier value, or the first."""
    codec = coder_of_one(BINARY, 4)
    assert codec.encode(torch.tensor([1, -1, 1, 1])) == PLAIN + bytes([0b10110000])
    with pytest.raises(WireError, match="coded votes where plain ones take fewer bytes"):
        codec.decode(CODED + bytes([0, 0, 0b10110000, 0]))  # the same votes: times 2^16, of 2^24
    assert codec.encode(torch.tensor([-1, -1, -1, -1])) == CODED


# What is refused


@every_alphabet
@pytest.mark.parametrize("count", [3, 200])
@pytest.mark.parametrize("bad", [2, -2, 3, 127, -127, 256, 257, 513, -511, 0.5, -0.5, 1.5, float("nan"), float("inf")])
def test_what_is_no_vote_is_not_encoded(alphabet: Alphabet, count: int, bad: float) -> None:
    x = torch.full((count,), 1, dtype=torch.float32 if isinstance(bad, float) else torch.int32)
    x[1] = bad
    for values in (x, x.to(torch.int8)) if isinstance(bad, int) and -128 <= bad <= 127 else (x,):
        with pytest.raises(WireError, match=f"is not {count} votes"):
            coder(alphabet, [0] * count, 1).encode(values)


@every_alphabet
@pytest.mark.parametrize("count", [3, 200])
def test_weights_that_are_no_numbers_leave_nothing_to_encode(alphabet: Alphabet, count: int) -> None:
    x = torch.ones(count, dtype=torch.int8)
    x[[0, 2]] = NO_VOTE
    plain = Binary(count) if alphabet == (-1, 1) else Ternary(count)
    for codec in (coder(alphabet, [0] * count, 1), plain):
        with pytest.raises(UnwritableError, match=f"2 of {count} weights are not numbers after training"):
            codec.encode(x)
        assert isinstance(codec.weigh(x[None])[0], UnwritableError)


@pytest.mark.parametrize("count", [3, 200])
def test_a_zero_is_no_binary_vote(count: int) -> None:
    with pytest.raises(WireError, match=f"is not {count} votes"):
        coder(BINARY, [0] * count, 1).encode(torch.tensor([0] + [1] * (count - 1), dtype=torch.int8))


@every_alphabet
@pytest.mark.parametrize("shape", [(2,), (4,), (1, 3), (3, 1), (), (0,)])
def test_what_has_another_shape_is_not_encoded(alphabet: Alphabet, shape: tuple[int, ...]) -> None:
    with pytest.raises(WireError, match=r"a tensor of shape .* is not 3 votes"):
        coder(alphabet, [0, 1, 1], 2).encode(torch.ones(shape, dtype=torch.int8))


@pytest.mark.parametrize("context", [[0, 3], [-1, 0], [32767]])
def test_a_context_that_does_not_exist_is_refused(context: list[int]) -> None:
    with pytest.raises(WireError, match=r"contexts from .* to .*, expected 0 to 2"):
        coder(BINARY, context, 3)


@every_alphabet
def test_cut_and_longer_payloads_are_refused(alphabet: Alphabet) -> None:
    context = random_context(1000, 9)
    codec = coder(alphabet, context, 9)
    payload = assert_round_trip(codec, drawn_as(codec.expected, context, alphabet))
    assert payload[:1] == CODED
    for wrong in [payload[:size] for size in range(len(payload))] + [payload + b"\0", payload + bytes([1, 0, 0, 0])]:
        with pytest.raises(WireError):
            codec.decode(wrong)


@every_alphabet
def test_other_ways_of_writing_than_plain_and_coded_are_refused(alphabet: Alphabet) -> None:
    codec = coder(alphabet, [0, 1, 1], 2)
    payload = codec.encode(votes_of(alphabet, [0, 1, 0]))
    for how in range(2, 256):
        with pytest.raises(WireError, match="neither plain nor coded"):
            codec.decode(bytes([how]) + payload[1:])
    with pytest.raises(WireError, match="0 bytes are neither"):
        codec.decode(b"")


def test_plain_votes_beyond_the_end_are_refused() -> None:
    with pytest.raises(WireError, match="beyond the end"):
        coder(BINARY, [0, 0, 0], 1).decode(PLAIN + bytes([0b00010000]))
    with pytest.raises(WireError, match="beyond the end"):
        coder(TERNARY, [0, 0, 0], 1).decode(PLAIN + bytes([1]))


def test_coded_votes_beyond_the_end_of_a_context_are_refused() -> None:
    codec = coder_of_one(BINARY, 4)
    for stray in (1, 2, 4, 8, 15):
        with pytest.raises(WireError, match="a context has votes beyond its end"):
            codec.decode(CODED + bytes([0, 0, 0b10110000 | stray, 0]))


@every_alphabet
def test_votes_have_one_encoding(alphabet: Alphabet) -> None:
    """Neither mode is accepted where the other is shorter."""
    codec, plain = coder_of_one(alphabet, 200), Binary if alphabet == BINARY else Ternary
    same = torch.full((200,), -1, dtype=torch.int8)
    with pytest.raises(WireError, match="plain votes where coded ones take no more bytes"):
        codec.decode(PLAIN + plain(200).encode(same))
    assert torch.equal(codec.decode(codec.encode(same)), same)


def test_shares_of_other_votes_are_refused() -> None:
    """Eighty votes, all -1, with shares that say so and with shares that do not: ten symbols 0, which cost no words."""
    codec = coder_of_one(BINARY, 80)
    assert codec.encode(torch.full((80,), -1)) == CODED + b"\1\0"
    for share in (2, 100, 32768, 65535):
        with pytest.raises(WireError, match="the shares do not match the votes"):
            codec.decode(CODED + share.to_bytes(2, "little"))


@every_alphabet
def test_shares_that_are_none_are_refused(alphabet: Alphabet) -> None:
    codec = coder(alphabet, [0] * 200, 1)
    payload = codec.encode(votes_of(alphabet, [0] * 200))
    width = 2 * (len(alphabet) - 1)
    with pytest.raises(WireError, match="not positive numbers"):
        codec.decode(payload[:1] + bytes(width) + payload[1 + width :])


@every_alphabet
@pytest.mark.parametrize("count", [0, 1, 6, 40, 200])
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_bytes_are_a_ballot_or_refused(alphabet: Alphabet, count: int, data: st.DataObject) -> None:
    codec = coder(alphabet, [i % 3 for i in range(count)], 3)
    payload = data.draw(st.sampled_from([b"", PLAIN, CODED])) + data.draw(st.binary(max_size=60))
    assert_ballot_or_refused(codec, payload)


@every_alphabet
def test_a_payload_with_any_bit_flipped_is_a_ballot_or_refused(alphabet: Alphabet) -> None:
    context = random_context(400, 5)
    codec = coder(alphabet, context, 5)
    for x in (drawn_as(codec.expected, context, alphabet), votes_of(alphabet, torch.arange(400) % len(alphabet))):
        payload = codec.encode(x)
        for bit in range(8 * len(payload)):
            flipped = bytearray(payload)
            flipped[bit // 8] ^= 1 << bit % 8
            assert_ballot_or_refused(codec, bytes(flipped))


def assert_ballot_or_refused(codec: EntropyVotes, payload: bytes) -> None:
    try:
        x = codec.decode(payload)
    except WireError:
        return
    assert x.shape == (codec.count,) and x.dtype == torch.int8
    assert set(x.tolist()) <= set(codec.alphabet)
    assert torch.equal(codec.decode(codec.encode(x)), x)


# In the method


def wide() -> Network:
    """3,600 voted weights."""
    norm = nn.BatchNorm1d(60, affine=False, track_running_stats=False)
    hidden = nn.Linear(60, 54, bias=False), nn.BatchNorm1d(54, affine=False, track_running_stats=False)
    return Network(nn.Sequential(nn.Linear(FEATURES, 60, bias=False), norm, nn.ReLU(), *hidden, nn.Linear(54, CLASSES)))


@pytest.mark.parametrize("votes", ALPHABETS)
@pytest.mark.parametrize("reputation", [Uniform(), Proportional()], ids=["uniform", "proportional"])
@pytest.mark.parametrize("train_float", [False, True])
def test_coding_changes_the_bytes_and_not_the_training(votes: Votes, reputation: Reputation, train_float: bool) -> None:
    coded, bits = (
        Federation(FedVote(votes=votes, reputation=reputation, train_float=train_float, coding=coding))
        for coding in ("entropy", "plain")
    )
    cohorts = [range(CLIENTS), (0, 1, 3), (4, 2)]
    for here, there in zip(coded.states(cohorts), bits.states(cohorts), strict=True):
        assert_same({name: value for name, value in here.items() if not name.startswith(HELD)}, there)


@pytest.mark.parametrize("votes", ALPHABETS)
@pytest.mark.parametrize("reputation", [Uniform(), Proportional()], ids=["uniform", "proportional"])
def test_coding_makes_every_frame_smaller(votes: Votes, reputation: Reputation) -> None:
    coded, bits = (
        Federation(FedVote(votes=votes, reputation=reputation, coding=coding), wide())
        for coding in ("entropy", "plain")
    )
    assert coded.network.D == 3600
    state = coded.start()
    for round in (1, 2, 3):
        (_, ups), (_, plain_ups) = (f.frames(state, round, range(CLIENTS)) for f in (coded, bits))
        coded_last, bits_last = (Round(f.method, f.network, Key(0, round)).reference(state) for f in (coded, bits))
        down, plain_down = (open_round(f.method, f.network, state, round) for f in (coded, bits))
        known = open_round(bits.method, bits.network, state, round, reference=bits_last)
        to_holders = open_round(coded.method, coded.network, state, round, reference=coded_last)
        assert len(to_holders) <= len(down)
        if round == 1:
            assert to_holders == known and len(known) < 100  # both sides have made it already
        elif int(state["levels"]) < 4096:
            assert len(to_holders) < len(down) < len(plain_down)
        else:  # a histogram of 4,097 levels is too long for so few weights: planes, and the byte that says so
            assert len(down) == len(plain_down) + 1
        for client in ups:
            assert len(ups[client]) < len(plain_ups[client])
        state = coded.round(state, round)


def test_another_coding_is_refused() -> None:
    with pytest.raises(ConfigError, match="coding is 'zip', expected one of: entropy, plain"):
        FedVote(coding="zip")  # type: ignore[arg-type]


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
