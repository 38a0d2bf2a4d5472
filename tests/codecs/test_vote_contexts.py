"""What is expected of votes: by whole numbers alone, right about clients that learn nothing, and cheaper for all."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from fedvote.codecs import EntropyVotes
from fedvote.codecs.vote_contexts import MANY, by_random_number, contexts
from fedvote.core import Message
from fedvote.methods import FedVote
from fedvote.methods.fedpaq import qsgd
from fedvote.methods.fedvote import Votes
from fedvote.methods.fedvote.ballot_wire import ballot_codec
from fedvote.quantize import BINARY, TERNARY, Alphabet, round_by_shared_random
from fedvote.randomness import BITS, Key, as_uniform, shared_random
from fedvote.studies.bench.codec import entropy_bits

KEY = Key(0, 1, 7)
ALPHABETS = pytest.mark.parametrize("alphabet", [BINARY, TERNARY], ids=["binary", "ternary"])
VOTES = pytest.mark.parametrize("votes", ["binary", "ternary"])


def broadcast(count: int, levels: int = 32) -> Message:
    """Soft votes, most of them nearly decided."""
    shares = Key(5).numpy("levels").beta(0.3, 0.3, count)
    level = torch.from_numpy(np.rint(shares * (levels - 1)).astype(np.int16))
    return {"level": level, "levels": torch.tensor([levels - 1], dtype=torch.int16)}


def ballot(method: FedVote, down: Message, moved: float) -> Tensor:
    """Of a client whose turn moves latent weights about so far."""
    ways = torch.randn(len(down["level"]), generator=Key(6).torch("ways"))
    w = method.normalisation(method.normalisation.inverse(method.soft(down)) + moved * ways)
    return round_by_shared_random(w[None], method.alphabet, [KEY])[0]


def bits(method: FedVote, down: Message, votes: Tensor) -> float:
    payload = ballot_codec(method.alphabet, down, KEY).encode(votes)
    assert torch.equal(ballot_codec(method.alphabet, down, KEY).decode(payload), votes)
    return 8 * len(payload) / len(votes)


def log2_in_steps(x: int, fine: int) -> int:
    whole = x.bit_length() - 1
    return (whole << fine) + (x << fine >> whole) - (1 << fine)


@ALPHABETS
@pytest.mark.parametrize("count", [2000, MANY])
@pytest.mark.parametrize("levels", [2, 32, 63, 4097])
def test_contexts_are_those_of_the_wire_format(alphabet: Alphabet, count: int, levels: int) -> None:
    down, lots_D = broadcast(count, levels), shared_random(KEY, count)
    context_D, _ = contexts(down["level"], levels, lots_D, alphabet)
    fine, limit = (2, 24) if count >= 2**17 else (0, 6)
    for level, lot, found in zip(down["level"][:500].tolist(), lots_D.tolist(), context_D.tolist(), strict=False):
        N = levels - 1
        if alphabet == BINARY:
            p, u, one = 2**10 * level // N, 2 * (lot // 2**12) + 1, 2**13
        else:
            p, u, one = 2**10 * (N + abs(2 * level - N)) // (2 * N), 2**13 + 2 * (lot // 2**12) + 1, 2**14
        p = min(max(p, 1), 2**10 - 1)
        z = log2_in_steps(u * (2**10 - p), fine) - log2_in_steps((one - u) * p, fine)
        place = min(max(z, -limit), limit) + limit
        side = (2 * level > N) - (2 * level < N)
        assert found == (place if alphabet == BINARY else 3 * place + side + 1)


@ALPHABETS
@pytest.mark.parametrize("count", [2000, MANY])
def test_expectations_are_probabilities_and_every_context_has_one(alphabet: Alphabet, count: int) -> None:
    context_D, expected_CV = contexts(broadcast(count)["level"], 32, shared_random(KEY, count), alphabet)
    assert context_D.max() < len(expected_CV) <= 256
    assert expected_CV.shape[1] == len(alphabet) and (expected_CV > 0).all()
    np.testing.assert_allclose(expected_CV.sum(1), 1)


@VOTES
def test_a_client_that_learns_nothing_votes_as_expected_and_sends_next_to_nothing(votes: Votes) -> None:
    method, down = FedVote(votes=votes), broadcast(2 * MANY)
    unmoved = ballot(method, down, 0.0)
    context_D, expected_CV = contexts(down["level"], 32, shared_random(KEY, 2 * MANY), method.alphabet)
    guessed = torch.tensor(method.alphabet)[torch.from_numpy(expected_CV.argmax(1))[context_D.long()]]
    assert float((guessed != unmoved).double().mean()) < 0.05
    assert bits(method, down, unmoved) < 0.1 * entropy_bits(unmoved, down["level"])


@VOTES
def test_the_less_a_turn_moves_the_less_is_sent_and_always_less_than_without_lots(votes: Votes) -> None:
    method, down = FedVote(votes=votes), broadcast(2 * MANY)
    ballots = {moved: ballot(method, down, moved) for moved in (0.01, 0.05, 0.2)}
    sent = [bits(method, down, votes_D) for votes_D in ballots.values()]
    assert sent == sorted(sent) and sent[0] < sent[-1] / 5
    for cost, votes_D in zip(sent, ballots.values(), strict=True):
        assert cost < 0.8 * entropy_bits(votes_D, down["level"])


@VOTES
@pytest.mark.parametrize("count", [1, 50, 3000])
def test_ballots_that_are_not_what_was_expected_survive_too(votes: Votes, count: int) -> None:
    method, down = FedVote(votes=votes), broadcast(count)
    against = -ballot(method, down, 0.0)
    payload = ballot_codec(method.alphabet, down, KEY).encode(against)
    assert torch.equal(ballot_codec(method.alphabet, down, KEY).decode(payload), against)


def test_nobody_reads_the_ballot_of_one_client_as_anothers() -> None:
    """The codec of another client gives other votes, or none at all; the frame says whose it is."""
    method, down = FedVote(), broadcast(3000)
    votes = ballot(method, down, 0.05)
    other = ballot_codec(method.alphabet, down, Key(0, 1, 8))
    assert not torch.equal(other.context, ballot_codec(method.alphabet, down, KEY).context)
    assert len(other.encode(votes)) > len(ballot_codec(method.alphabet, down, KEY).encode(votes))


@pytest.mark.parametrize("count", [2000, MANY])
def test_the_context_of_a_level_is_the_octave_of_its_lot(count: int) -> None:
    lots_D = torch.cat([torch.tensor([0, 1, 2**BITS - 1], dtype=torch.int32), shared_random(KEY, count - 3)])
    context_D, expected = by_random_number(lots_D)
    fine = 2 if count >= 2**17 else 0
    for lot, found in zip(lots_D[:500].tolist(), context_D.tolist(), strict=False):
        assert found == log2_in_steps(lot + 1, fine)
    assert int(context_D.max()) == len(expected) - 1 and not context_D[0]


@pytest.mark.parametrize(("norm", "times"), [(20.0, 2.0), (400.0, 1.4)], ids=["a bucket", "a whole update"])
def test_levels_take_much_less_than_without_lots(norm: float, times: float) -> None:
    x = torch.randn(MANY, generator=Key(2).torch("update"))
    lots_D = shared_random(KEY, MANY)
    level = qsgd(x, torch.tensor(norm), 1, as_uniform(lots_D))
    known, unknown = (EntropyVotes(TERNARY, *by_random_number(at)) for at in (lots_D, torch.full_like(lots_D, 9)))
    assert torch.equal(known.decode(known.encode(level)), level)
    assert times * len(known.encode(level)) < len(unknown.encode(level))
