"""Messages are as long as their coding says, and arrive: broadcasts, rounded updates, counts of examples."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from fedvote import FedAvg, FedPAQ, FedVote
from fedvote.codecs import Signed
from fedvote.core import State
from fedvote.network.network import Network
from fedvote.randomness import Key
from tests.toy import Federation, batches, close_round, keys, merge, open_round

WIDE = Network(nn.Sequential(nn.Linear(6, 500, bias=False), nn.BatchNorm1d(500, affine=False), nn.Linear(500, 3)))


def after(method: FedVote, ballots: torch.Tensor) -> State:
    """The state after a round of these ballots."""
    start = method.init(WIDE, len(ballots))
    return merge(method, start, {"votes": ballots.to(torch.int8)}, list(range(len(ballots))), Key(0, 1))


def test_a_plain_broadcast_has_one_size_and_a_coded_one_is_shorter_the_more_is_decided() -> None:
    agreed = torch.ones(3, WIDE.D)
    split = torch.where(torch.rand(3, WIDE.D, generator=Key(0).torch("votes")) < 0.5, 1, -1)
    split[:, :2] = torch.tensor([1, -1])  # so that the lowest and the highest level are there
    sizes = {
        coding: [len(open_round(method, WIDE, after(method, ballots), 2)) for ballots in (split, agreed)]
        for coding in ("plain", "entropy")
        for method in [FedVote(coding=coding)]
    }
    assert sizes["plain"][0] > WIDE.D * 2 / 8  # two bits for one of four levels
    assert sizes["entropy"][0] < sizes["plain"][0] and sizes["entropy"][1] < sizes["plain"][0] / 10


def test_one_level_is_coded_against_the_shared_random_numbers() -> None:
    """Which is shorter than by its histogram: a weight whose number is high is 0 nearly for sure."""
    coded, plain = (Federation(FedPAQ(bucket=64, coding=coding), WIDE) for coding in ("entropy", "plain"))
    down, coded_frames = coded.frames(coded.start(), 1, [0])
    _, plain_frames = plain.frames(plain.start(), 1, [0])
    up, _ = coded.method.local(WIDE, down, batches(coded.data, [0]), {}, keys([0]))
    by_histogram, whole_bits = (len(Signed(WIDE.D + WIDE.F, 1, e).encode(up["level"][0])) for e in (True, False))
    assert len(coded_frames[0]) < 0.9 * (len(plain_frames[0]) - whole_bits + by_histogram)


@pytest.mark.parametrize("method", [FedPAQ(levels=2), FedPAQ(levels=1), FedPAQ(levels=300)], ids=str)
def test_levels_arrive_however_many_there_are(method: FedPAQ) -> None:
    federation = Federation(method)
    assert not torch.equal(federation.round(federation.start(), 1)["voted"], federation.start()["voted"])


def test_by_samples_the_count_arrives_and_weighs() -> None:
    """A client with one example counts a third of one with three; the toy's clients have equally many."""
    federation = Federation(FedAvg(by_samples=True))
    state = federation.start()
    _, frames = federation.frames(state, 1, [0, 1])
    closed = close_round(federation.method, federation.network, state, frames, Key(0, 1))
    assert closed.counted == [0, 1]
    equally = Federation(FedAvg()).round(state, 1, [0, 1])
    torch.testing.assert_close(closed.state["voted"], equally["voted"])

    ups = {"voted": torch.tensor([[4.0], [8.0]]), "float": torch.tensor([[0.0], [1.0]])}
    before = {"voted": torch.zeros(1), "float": torch.zeros(1)}
    merged = merge(federation.method, before, ups | {"samples": torch.tensor([[1.0], [3.0]])}, [0, 1], Key(0, 1))
    assert merged["voted"].tolist() == pytest.approx([7.0]) and merged["float"].tolist() == pytest.approx([0.75])
