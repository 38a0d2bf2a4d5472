"""The simulator under a secure tally: the same states to the bit, honest bytes, and a reason for every refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from fedvote import ConfigError, FedAvg, FedPAQ, FedVote, Simulation, simulate
from fedvote.attacks import DisagreeingCopycat, Inverse, Omniscient
from fedvote.core import Message, State
from fedvote.errors import Doubt
from fedvote.influence import Agreement
from fedvote.method import AllAtOnce, Merge, Method
from fedvote.methods import Eden, FetchSGD, SignSGD, Signum
from fedvote.randomness import Key
from fedvote.rounds import BallotBox, Round
from fedvote.rounds.snapshot import Snapshot
from fedvote.secure import SecureTally
from fedvote.secure.in_process import bytes_of, key_pair, nonce, seeded, tally
from fedvote.secure.session import Session
from fedvote.secure.whole_numbers import to_sums, to_vector
from tests.toy import CLIENTS, assert_same, batches, dataset, examples, keys, memory, module
from tests.toy import Federation as Toy

SUMMED: dict[str, Method] = {
    "binary, plain": FedVote(coding="plain"),
    "binary, coded broadcasts": FedVote(),
    "ternary": FedVote(votes="ternary"),
    "few levels": FedVote(levels=3, level_rounding="carry"),
    "changes": FedVote(counts="changes"),
    "influence, deployed by three rounds": FedVote(influence=Agreement(), deploy_rounds=3),
    "fixed point": FedAvg(clip=0.05),
    "fixed point, rounded broadcasts": FedAvg(clip=0.05, down_levels=3),
    "one scale": FedPAQ(clip=0.05),
    "one scale, plain": FedPAQ(clip=0.05, levels=7, coding="plain"),
    "signs": SignSGD(),
    "momentum": Signum(),
}


def simulated(method: Method | None = None, **options: Any) -> Simulation:
    chosen: dict[str, Any] = {"clients": 6, "cohort": 4, "rounds": 2, "steps": 4, "batch": 8, "device": "cpu"}
    return simulate(module(), dataset(), method, **chosen | {"start": "seed"} | options)


def without_bytes(snapshot: Snapshot) -> dict[str, Any]:
    return {n: v for n, v in snapshot.record.items() if "bytes" not in n and "bits" not in n and "seconds" not in n}


@pytest.mark.parametrize("method", SUMMED.values(), ids=list(SUMMED))
def test_a_secure_tally_changes_no_bit_of_any_state_and_counting_only_changes_no_byte(method: Method) -> None:
    plain, masked, counted = (
        list(simulated(method, **secure))
        for secure in ({}, {"secure": SecureTally()}, {"secure": SecureTally(count_only=True)})
    )
    assert len(plain) == len(masked) == len(counted) == 2
    for one, other, third in zip(plain, masked, counted, strict=True):
        assert_same(one.state, other.state)
        assert_same(one.state, third.state)
        assert_same(one.memory, other.memory)
        assert without_bytes(one) == without_bytes(other)
        for name in ("uplink_bytes", "downlink_bytes"):
            assert other.record[name] == third.record[name] > one.record[name]


def test_written_messages_and_hostile_clients_change_nothing_either() -> None:
    options: dict[str, Any] = {"attack": Omniscient(), "hostile": 2, "cohort": 6}
    for one, other in zip(
        simulated(**options), simulated(wire="written", secure=SecureTally(), **options), strict=True
    ):
        assert_same(one.state, other.state)


class Ballots:
    """The ballots of one round of the toy federation, and what a server makes of some of them."""

    def __init__(self, method: Method):
        self.toy = Toy(method)
        self.state = method.init(self.toy.network, CLIENTS)
        self.round = Round(method, self.toy.network, Key(0, 1), sums_alone=True)
        clients, down = range(CLIENTS), method.broadcast(self.state)
        turn = batches(examples(), clients)
        outgoing, _ = self.round.train(down, turn, memory(method, self.toy.network, clients), keys(clients))
        self.rows: Mapping[int, Message] = {client: outgoing.row(client) for client in clients}

    def in_the_clear(self, voters: list[int]) -> State:
        box = BallotBox(self.round, self.state, CLIENTS)
        for client in voters:
            box.put({name: value[None] for name, value in self.rows[client].items()}, [client])
        return box.close().state

    def masked(self, voters: list[int], gone: list[int]) -> State:
        codecs, box = self.round.wire.summed, BallotBox(self.round, self.state, CLIENTS)
        session = Session(SecureTally().terms("toy", codecs), 1, nonce(Key(0, 1)), tuple(range(CLIENTS)))
        numbers_n, sent = tally(
            session,
            [(client, to_vector(self.rows[client], codecs)) for client in voters],
            {client: key_pair(0, client) for client in range(CLIENTS)},
            lambda client: seeded(Key(0, 1, client), "shares"),
            gone,
        )
        if not gone:
            assert sent == bytes_of(session, frozenset(voters))
        box.put_sums(to_sums(numbers_n, codecs, len(voters)), voters)
        return box.close().state


@pytest.mark.parametrize(("before", "between"), [([], []), ([3], []), ([], [0]), ([], [4])])
@pytest.mark.parametrize("method", SUMMED.values(), ids=list(SUMMED))
def test_with_clients_lost_at_any_step_the_state_is_that_of_the_voters(
    method: Method, before: list[int], between: list[int]
) -> None:
    ballots, voters = Ballots(method), [client for client in range(CLIENTS) if client not in before]
    assert_same(ballots.in_the_clear(voters), ballots.masked(voters, between))


def test_bits_a_weight_are_the_modulus_and_at_most_two_percent_for_a_large_network() -> None:
    """VGG-7 has 13 million votes: no mask has to be made to count its bytes."""
    from fedvote.codecs import Binary, Ternary

    count, cohort = 13_000_000, tuple(range(31))
    for codec, bits in ((Binary(count), 5), (Ternary(count), 10)):
        session = Session(SecureTally().terms("a run", {"votes": codec}), 1, bytes(16), cohort)
        up = bytes_of(session, frozenset(range(21))).up  # a third is missing: the most shares
        assert bits <= 8 * up / (21 * count) <= 1.02 * bits


def test_private_numbers_make_another_run_each_time_and_the_seed_the_same() -> None:
    def last(rounding: str) -> torch.Tensor:
        return list(simulated(secure=SecureTally(rounding=rounding)))[-1].state["level"]  # type: ignore[arg-type]

    assert torch.equal(last("seed"), last("auto"))
    assert not torch.equal(last("private"), last("private"))


class Diverging(FedVote):
    """The votes of client 2 are NaN."""

    def local(self, *arguments: Any) -> tuple[Message, State]:
        ups, remembered = super().local(*arguments)
        rows = [row for row, key in enumerate(arguments[-1]) if key.client == 2]
        ups["votes"][rows] = -128
        return ups, remembered


def test_a_client_whose_weights_became_nan_does_not_vote_and_the_others_count() -> None:
    one, other = (list(simulated(Diverging(), cohort=6, **s))[-1] for s in ({}, {"secure": SecureTally()}))
    assert_same(one.state, other.state)
    assert list(one.record["refused"]) == list(other.record["refused"]) == [2]


def test_a_round_with_too_few_voters_counts_nobody_and_the_run_goes_on() -> None:
    for count_only in (False, True):
        secure = SecureTally(minimum=6, count_only=count_only)
        with pytest.warns(Doubt, match="in 2 of 2 rounds no message counted"):
            first, *_, last = simulated(Diverging(), cohort=6, secure=secure)
        assert_same(first.state, last.state)
        assert "a tally of 5 ballots" in last.record["refused"][0]


def test_a_cohort_that_an_oracle_made_too_small_counts_nobody_and_the_run_goes_on() -> None:
    """The oracle leaves out hostile clients: of six clients two are left."""
    with pytest.warns(Doubt, match="no message counted"):
        last = list(simulated(cohort=6, attack=Inverse(), hostile=4, oracle=True, secure=SecureTally()))[-1]
    assert "a session of 2 clients, expected secure.minimum = 3" in next(iter(last.record["refused"].values()))


def test_a_cohort_whose_sums_are_too_large_is_refused() -> None:
    with pytest.raises(ConfigError, match="a round has 70000 clients, so that sums need 32 bits, expected 31 at most"):
        simulated(FedAvg(clip=1), clients=70_000, cohort=70_000, secure=SecureTally())


def test_numbers_above_the_voters_are_refused() -> None:
    from fedvote.codecs import Ternary
    from fedvote.errors import WireError

    codecs = {"votes": Ternary(2)}
    assert to_sums(torch.tensor([3, 0, 2, 5]), codecs, 5)["votes"].tolist() == [[3, 0], [2, 5]]
    with pytest.raises(WireError, match="a tally of 6 in votes, expected at most 5 of 5 clients"):
        to_sums(torch.tensor([3, 1, 2, 5]), codecs, 5)


@dataclass(frozen=True)
class Comparing(FedVote):
    """A method of its own that keeps ballots."""

    def merge(self, state: State, key: Key) -> Merge:
        return AllAtOnce(lambda ups, clients: state)


@pytest.mark.parametrize(
    ("method", "options", "problem"),
    [
        (FedVote(reputation="camps"), {}, "rule Camps compares ballots: set method.reputation = uniform"),  # type: ignore[arg-type]
        (FedVote(train_float=True), {}, "FedVote with these settings sends more .*train_float = false"),
        (FedAvg(), {}, "FedAvg with these settings sends more than whole numbers"),
        (FedPAQ(), {}, "FedPAQ with these settings sends more"),
        (Eden(), {}, "Eden with these settings sends more"),
        (FetchSGD(), {}, "FetchSGD with these settings sends more"),
        (Comparing(), {}, "Comparing needs each message"),
        (FedVote(counts="changes"), {"rounding": "private"}, "FedVote with these settings draws the numbers"),
        (None, {"cohort": 2}, r"a round has 2 clients, expected secure.minimum = 3"),
        (None, {"count_only": True, "wire": "written"}, "secure.count_only writes no message"),
        (
            None,
            {"attack": DisagreeingCopycat(), "hostile": 2, "rounding": "private"},
            "attack DisagreeingCopycat needs the numbers by which others round",
        ),
    ],
)
def test_what_needs_more_than_a_tally_is_refused_with_its_reason(
    method: Method | None, options: dict[str, Any], problem: str
) -> None:
    own = {name: options.pop(name) for name in ("count_only", "rounding") if name in options}
    with pytest.raises(ConfigError, match=f"the server learns only sums, but .*{problem}"):
        simulated(method, secure=SecureTally(**own), **options)


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ({"minimum": 1}, "a tally of one is a ballot"),
        ({"threshold": 1.5}, "expected a share"),
        ({"neighbours": 1}, "or 2 or more"),
        ({"neighbours": -2}, "or 2 or more"),
        ({"rounding": "secret"}, "rounding"),
    ],
)
def test_settings_that_make_no_sense_are_refused(setting: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        SecureTally(**setting)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: FedAvg(clip=-1), "clip is -1"),
        (lambda: FedAvg(clip=1, by_samples=True), "the server only adds up whole numbers"),
        (lambda: FedAvg(clip=1, aggregate="median"), "the server only adds up whole numbers"),  # type: ignore[arg-type]
        (lambda: FedPAQ(clip=float("inf")), "clip is inf"),
        (lambda: FedPAQ(clip=1, bucket=512), "set bucket = 0, or clip = 0"),
    ],
)
def test_a_clipping_that_makes_no_sense_is_refused(make: Any, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        make()


def test_fixed_point_is_close_to_floats_and_clips_at_the_bound() -> None:
    exact, fixed = (list(simulated(method))[-1].state["voted"] for method in (FedAvg(), FedAvg(clip=0.5)))
    assert float((exact - fixed).abs().max()) < 0.5 / 16383 * 2
    start, clipped = simulated(), list(simulated(FedAvg(clip=0.001), rounds=1))[-1].state["voted"]
    moved = (clipped - start.federation.network.start.voted).abs().max()
    assert float(moved) == pytest.approx(0.001, rel=1e-3)


def test_attacks_that_a_tally_does_not_hinder_are_allowed() -> None:
    assert list(simulated(attack=Inverse(), hostile=2, secure=SecureTally()))
