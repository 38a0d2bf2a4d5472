"""Packed ballots: counted, weighed and compared as the votes themselves would be, by every kind of loop."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from fedvote import packed, quantize
from fedvote.errors import ConfigError
from fedvote.packed import Counter, Packed, agreements, count, pack, plain, tally
from fedvote.quantize import BINARY, TERNARY, Alphabet
from fedvote.randomness import Key

LENGTHS = (0, 1, 5, 7, 8, 9, 63, 64, 65, 1001)
CLIENTS = (1, 2, 3, 7, 8, 9, 31, 255, 256, 300)
needs_numba = pytest.mark.skipif(packed._compiled() is None, reason="numba is not installed")


@pytest.fixture(params=["plain", pytest.param("compiled", marks=needs_numba)], autouse=True)
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every test runs with torch's loops and with numba's, whatever the size."""
    use(request.param, monkeypatch)
    yield request.param


@pytest.fixture(params=[BINARY, TERNARY], ids=["binary", "ternary"])
def alphabet(request: pytest.FixtureRequest) -> Alphabet:
    chosen: Alphabet = request.param
    return chosen


def use(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: ModuleType | None = packed._compiled() if name == "compiled" else plain
    assert chosen is not None
    monkeypatch.setattr(packed, "_loops", lambda rows: chosen if rows.device.type == "cpu" else plain)


def drawn(K: int, D: int, alphabet: Alphabet, seed: int = 0) -> Tensor:
    index = torch.randint(0, len(alphabet), (K, D), generator=Key(seed).torch("votes"))
    return torch.tensor(alphabet, dtype=torch.int8)[index]


def weights(K: int) -> Tensor:
    return torch.rand(K, generator=Key(0).torch("weights"))


def alone(ballots: Packed, k: int) -> Packed:
    return Packed(ballots.words_KPW[k : k + 1], ballots.count, ballots.alphabet)


def assert_counted(counted_PD: Tensor, votes_KD: Tensor, alphabet: Alphabet) -> None:
    expected = torch.stack([(votes_KD == value).sum(0) for value in alphabet[1:]])
    assert torch.equal(counted_PD.long(), expected)


def one_addition_a_vote(votes_KD: Tensor, weights_K: Tensor, alphabet: Alphabet) -> Tensor:
    total_VD = np.zeros((len(alphabet), votes_KD.shape[1]), np.float32)
    for votes_D, weight in zip(votes_KD.numpy(), weights_K.numpy(), strict=True):
        for row, value in zip(total_VD, alphabet, strict=True):
            row[votes_D == value] += weight
    return torch.from_numpy(total_VD)


def test_three_ballots_of_three_weights() -> None:
    votes = torch.tensor([[1, -1, 1], [1, 1, -1], [1, -1, -1]], dtype=torch.int8)
    ballots = pack(votes, BINARY)
    assert count(ballots).tolist() == [[3, 1, 1]]
    assert tally(ballots, torch.tensor([0.5, 0.25, 2.0])).tolist() == [[0, 2.5, 2.25], [2.75, 0.25, 0.5]]
    assert agreements(ballots).tolist() == [[3, 1, 2], [1, 3, 2], [2, 2, 3]]


@pytest.mark.parametrize("K", CLIENTS)
def test_counts_are_those_of_the_votes(K: int, alphabet: Alphabet) -> None:
    for D in LENGTHS:
        votes = drawn(K, D, alphabet)
        assert_counted(count(pack(votes, alphabet)), votes, alphabet)


@pytest.mark.parametrize(
    ("K", "dtype"), [(255, torch.uint8), (256, torch.int16), (2**15 - 1, torch.int16), (2**15, torch.int32)]
)
def test_counts_are_in_the_smallest_type_that_holds_them(K: int, dtype: torch.dtype) -> None:
    votes = torch.ones((K, 3), dtype=torch.int8)
    counted = count(pack(votes, BINARY))
    assert counted.dtype == dtype and counted.tolist() == [[K] * 3]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 300), st.integers(0, 700), st.sampled_from([BINARY, TERNARY]), st.integers(0, 2**32))
def test_any_ballots_are_counted_and_weighed_as_their_votes(K: int, D: int, alphabet: Alphabet, seed: int) -> None:
    votes, weights_K = drawn(K, D, alphabet, seed), weights(K)
    for chosen in {plain, packed._compiled() or plain}:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packed, "_loops", lambda rows, chosen=chosen: chosen)
            ballots = pack(votes, alphabet)
            assert_counted(count(ballots), votes, alphabet)
            assert torch.equal(tally(ballots, weights_K), one_addition_a_vote(votes, weights_K, alphabet))


@pytest.mark.parametrize("K", [1, 8, 31, 300])
def test_weighed_votes_are_the_sums_in_the_ballots_order_to_the_bit(K: int, alphabet: Alphabet) -> None:
    votes, weights_K = drawn(K, 1001, alphabet), weights(K)
    weighed = tally(pack(votes, alphabet), weights_K)
    assert torch.equal(weighed, one_addition_a_vote(votes, weights_K, alphabet))
    assert torch.equal(quantize.tally(votes, weights_K, alphabet), weighed)


def test_weights_of_zero_and_below_it_are_added_like_others() -> None:
    votes, weights_K = drawn(5, 100, BINARY), torch.tensor([0.0, -1.5, 2.0, -0.25, 1.0])
    assert torch.equal(tally(pack(votes, BINARY), weights_K), one_addition_a_vote(votes, weights_K, BINARY))


@pytest.mark.parametrize("D", LENGTHS)
def test_agreement_is_the_number_of_equal_votes(D: int, alphabet: Alphabet) -> None:
    votes = drawn(9, D, alphabet)
    assert torch.equal(agreements(pack(votes, alphabet)), (votes[:, None] == votes[None]).sum(2))


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, 0), (0, 1), (3, 5), (8, 16), (5, 64), (63, 65), (64, 128), (1, 999), (500, 500), (700, 1001)],
)
def test_agreement_on_a_part_counts_that_part_alone(start: int, stop: int, alphabet: Alphabet) -> None:
    votes = drawn(5, 1001, alphabet)
    part = votes[:, start:stop]
    ballots = pack(votes, alphabet)
    before = ballots.words_KPW.clone()
    assert torch.equal(agreements(ballots, start, stop), (part[:, None] == part[None]).sum(2))
    assert torch.equal(ballots.words_KPW, before)


def test_agreement_on_a_part_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="weights 5 to 12, expected a range within 0 to 11"):
        agreements(pack(drawn(2, 11, BINARY), BINARY), 5, 12)


@pytest.mark.parametrize("K", [1, 8, 20, 300])
def test_ballots_one_at_a_time_count_as_all_at_once(K: int, alphabet: Alphabet) -> None:
    ballots = pack(drawn(K, 1001, alphabet), alphabet)
    counter = Counter(1001, alphabet, most=max(K, 2))
    for k in range(K):
        counter.add(alone(ballots, k))
    assert torch.equal(counter.counts(), count(ballots))
    assert counter.counts().dtype == count(ballots).dtype


def test_counts_may_be_asked_for_in_between_and_stacks_added() -> None:
    votes = drawn(23, 77, TERNARY)
    counter = Counter(77, TERNARY, most=23)
    for start, stop in ((0, 3), (3, 4), (4, 15), (15, 23)):
        counter.add(pack(votes[start:stop], TERNARY))
        assert_counted(counter.counts(), votes[:stop], TERNARY)


def test_a_counter_holds_no_more_after_a_thousand_ballots_than_before_the_first() -> None:
    counter, ballot = Counter(130, BINARY, most=1000), pack(torch.ones((1, 130), dtype=torch.int8), BINARY)

    def held() -> dict[str, tuple[int, int]]:
        tensors = {name: value for name, value in vars(counter).items() if isinstance(value, Tensor)}
        return {name: (value.data_ptr(), value.untyped_storage().nbytes()) for name, value in tensors.items()}

    before = held()
    for _ in range(1000):
        counter.add(ballot)
    assert counter.counts().tolist() == [[1000] * 130]
    assert held() == before and len(before) == 2
    assert not any(isinstance(value, list | dict) for value in vars(counter).values())


def test_a_counter_refuses_one_ballot_too_many_and_other_ballots() -> None:
    counter = Counter(9, BINARY, most=2)
    counter.add(pack(drawn(2, 9, BINARY), BINARY))
    with pytest.raises(ConfigError, match="ballot 3 of at most 2"):
        counter.add(pack(drawn(1, 9, BINARY), BINARY))
    with pytest.raises(ConfigError, match=r"a ballot of 8 votes of \(-1, 1\), expected 9 of \(-1, 1\)"):
        counter.add(pack(drawn(1, 8, BINARY), BINARY))


def test_a_ballot_takes_a_bit_a_weight_and_a_ternary_one_two() -> None:
    assert pack(drawn(1, 6400, BINARY), BINARY).words_KPW.nbytes == 800
    assert pack(drawn(1, 6400, TERNARY), TERNARY).words_KPW.nbytes == 1600


@needs_numba
def test_many_blocks_on_many_threads_give_the_bits_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    ballots = pack(drawn(5, 64 * (3 * 2**13 + 700) + 3, TERNARY), TERNARY)
    threads, results = torch.get_num_threads(), []
    try:
        for name, number in (("plain", 1), ("compiled", 1), ("compiled", 3)):
            use(name, monkeypatch)
            torch.set_num_threads(number)
            results.append((count(ballots), tally(ballots, weights(5)), agreements(ballots)))
    finally:
        torch.set_num_threads(threads)
    for result in results[1:]:
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(result, results[0], strict=True))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize(("K", "D"), [(1, 0), (1, 1), (31, 1001), (300, 10_007), (9, 2**21 + 5)])
def test_a_gpu_gives_the_bits_of_a_cpu(K: int, D: int, alphabet: Alphabet) -> None:
    votes, weights_K = drawn(K, D, alphabet), weights(K)
    here, there = pack(votes, alphabet), pack(votes.cuda(), alphabet)
    assert torch.equal(there.words_KPW.cpu(), here.words_KPW)
    assert torch.equal(count(there).cpu(), count(here))
    assert torch.equal(tally(there, weights_K.cuda()).cpu(), tally(here, weights_K))
    assert torch.equal(agreements(there).cpu(), agreements(here))
    assert torch.equal(agreements(there, D // 3, D // 2).cpu(), agreements(here, D // 3, D // 2))
    counter = Counter(D, alphabet, most=K, device="cuda")
    counter.add(there)
    assert torch.equal(counter.counts().cpu(), count(here))


def test_few_votes_and_a_missing_numba_take_the_plain_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    few, many = torch.zeros((1, 8), dtype=torch.int64), torch.zeros((1, packed.WORTH_COMPILING), dtype=torch.int64)
    assert packed._loops(few) is plain
    assert packed._loops(many) is (packed._compiled() or plain)
    monkeypatch.setattr(packed, "_compiled", lambda: None)
    assert packed._loops(many) is plain
