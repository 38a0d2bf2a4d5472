"""Hostile clients in whole rounds: they pass through the codec, and nobody on the server's side knows who they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import nn

from fedvote.attacks import ATTACKS, ALittleIsEnough, Attack, InnerProduct, Inverse, LabelFlip, Nothing, Omniscient
from fedvote.attacks.a_little_is_enough import hidden
from fedvote.codecs import Float32, Header, Integers, pack, unpack
from fedvote.core import Batches, Codec, Message, State
from fedvote.engines.simulate import Simulation, simulate
from fedvote.errors import ConfigError
from fedvote.method import AllAtOnce, Merge, Method
from fedvote.methods import METHODS, Eden, FedAvg, FedVote, FetchSGD
from fedvote.network.network import Network
from fedvote.randomness import Key
from fedvote.reputation import Cut, Proportional
from fedvote.runs.config import read
from fedvote.runs.folder import RunFolder
from fedvote.runs.simulated_run import run
from fedvote.wire import FixedWire, Wire
from tests.toy import Federation, assert_close, assert_same, batches, close_round, dataset, hostile_turn, memory, module

SMALL = {"fetchsgd": {"columns": 64, "k": 10}}


def simulation(
    method: Method | None = None, attack: Attack | None = None, hostile: int = 2, oracle: bool = False
) -> Simulation:
    return simulate(
        module(), dataset(), method, clients=5, rounds=2, steps=3, batch=8, attack=attack, hostile=hostile,
        device="cpu", oracle=oracle,
    )  # fmt: skip


REFUSED = {(method, name) for method in ("fedpaq", "eden") for name, kind in ATTACKS.items() if kind().joint}
CARRIED = [(method, attack) for method in METHODS for attack in ATTACKS if (method, attack) not in REFUSED]


@pytest.mark.parametrize(("name", "attack"), CARRIED)
def test_every_attack_on_every_method_is_a_message_that_the_codec_takes(name: str, attack: str) -> None:
    method = METHODS[name](**SMALL.get(name, {}))  # type: ignore[arg-type]
    for snapshot in simulation(method, ATTACKS[attack]()).run():
        assert "refused" not in snapshot.record
        assert all(value.isfinite().all() for value in snapshot.state.values())


def test_attackers_know_how_many_clients_there_are() -> None:
    """On which z depends: of five, two are hostile."""
    federation = Federation(FedAvg())
    state = federation.start()
    _, frames = federation.frames(state, 1, range(5))
    forged, known = (
        hostile_turn(attack, federation.method, federation.network, state, frames, {1, 3}, Key(0, 1))
        for attack in (ALittleIsEnough(), ALittleIsEnough(z=hidden(5, 2)))
    )
    assert forged == known and hidden(5, 2) != hidden(2, 2)


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_attack_takes_votes_and_floats_in_one_message(attack: str) -> None:
    for snapshot in simulation(FedVote(votes="ternary", train_float=True), ATTACKS[attack]()).run():
        assert "refused" not in snapshot.record
        assert all(value.isfinite().all() for value in snapshot.state.values())


@pytest.mark.parametrize(("name", "attack"), sorted(REFUSED))
def test_messages_that_do_not_compare_are_not_put_together(name: str, attack: str) -> None:
    """Refused before round 1, by the names of both, with what to use instead."""
    method, kind = METHODS[name], ATTACKS[attack]
    alone = "nothing, inverse, label-flip, random, partial, layer, sleeper, backdoor, rotated"
    with pytest.raises(
        ConfigError, match=rf"attack {kind.__name__} .* {method.__name__} .* single messages: {alone}; or"
    ):
        simulation(method(), kind())


def test_an_inverted_update_is_inverted_however_it_is_scaled() -> None:
    """EDEN sends signs, and a scale for every block: with one attacker alone, the model moves the other way."""
    method = Eden(block=16)
    federation = Federation(method)
    network, start = federation.network, federation.start()
    _, frames = federation.frames(start, 1, [0])
    forged = hostile_turn(Inverse(), method, network, start, frames, {0}, Key(0, 1))
    there, back = (
        close_round(method, network, start, sent, Key(0, 1)).state["voted"] - start["voted"]
        for sent in (frames, forged)
    )
    assert float(there.norm()) > 0
    torch.testing.assert_close(back, -there)


@pytest.mark.parametrize(
    "method",
    [
        FedAvg(lr=1e-12, by_samples=True),
        FetchSGD(lr=1e-12),
        FedVote(lr=1e-12, float_lr=1e-12, train_float=True),
        FedVote(votes="ternary", lr=1e-12),
    ],
    ids=str,
)
def test_a_client_that_learns_nothing_sends_what_is_called_unmoved(method: Method) -> None:
    federation = Federation(method)
    down = method.broadcast(federation.start())
    turn, keys = batches(federation.data, range(5)), [Key(0, 1, client) for client in range(5)]
    ups, _ = method.local(federation.network, down, turn, memory(method, federation.network, range(5)), keys)
    unmoved = method.wire(federation.network).unmoved(down)
    for name in ups.keys() - {"samples"}:
        off = ups[name].float().mean(0) - unmoved.get(name, 0)
        if name != "votes":
            assert float(off.abs().max()) < 1e-5
            continue
        likely = unmoved[name].abs() > 0.9  # of whose votes nine in ten, or more, are their sign
        assert int(likely.sum()) > 10
        assert float((ups[name][:, likely] == unmoved[name][likely].sign()).float().mean()) > 0.9
        assert float(off.mean().abs()) < 0.15


def test_who_is_hostile_changes_nothing_but_what_they_send() -> None:
    """Clients that are hostile in name only: the same bits, whoever and however many they are."""
    plain = list(simulation(FedVote(reputation=Proportional()), hostile=0).run())[-1].state
    for hostile in (1, 2, 4):
        marked = list(simulation(FedVote(reputation=Proportional()), Nothing(), hostile).run())[-1].state
        assert_same(marked, plain)


def test_the_server_sees_frames_and_nothing_else() -> None:
    """Clients that swap their ballots, whatever these are, swap their reputations; everything else stays."""
    method = FedVote(reputation=Cut(), coding="plain")  # whose codec is the same for all
    federation = Federation(method)
    network, state = federation.network, federation.start()
    down, frames = federation.frames(state, 1, range(5))
    forged = hostile_turn(Inverse(), method, network, state, frames, {1, 3}, Key(0, 1))
    assert {m for m in range(5) if forged[m] != frames[m]} == {1, 3}

    def header(client: int) -> Header:
        return Header(1, client, network.fingerprint, "FedVote")

    codecs = method.wire(network).up(down, Key(0, 1))
    ballots = [unpack(forged[client], header(client), codecs) for client in range(5)]
    order = [1, 0, 4, 3, 2]  # whose ballot each of them sends instead
    swapped = {client: pack(header(client), ballots[whose], codecs) for client, whose in enumerate(order)}
    closed, other = (close_round(method, network, state, sent, Key(0, 1)) for sent in (forged, swapped))
    assert closed.counted == other.counted == [0, 1, 2, 3, 4] and not closed.refused
    for name in ("level", "plurality"):
        assert torch.equal(closed.state[name], other.state[name])
    earned, swapped_too = (closes.state["reputation/reputation"] for closes in (closed, other))
    assert len(earned.unique()) > 1
    torch.testing.assert_close(swapped_too, earned[order])


@pytest.mark.parametrize("attack", [Inverse(), Omniscient(), InnerProduct(1e25)], ids=str)
def test_messages_that_will_be_refused_stop_no_attack(attack: Attack) -> None:
    """Neither those of clients that diverge, nor those that an attack makes."""
    wild = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
    lr = 0.1 if isinstance(attack, InnerProduct) else 500.0
    for wire in ("weighed", "written"):
        made = simulate(
            wild, dataset(), FedAvg(lr, "SGD"), clients=5, rounds=4, steps=3, batch=8, device="cpu", attack=attack,
            hostile=2, wire=wire,
        )  # fmt: skip
        records = [snapshot.record for snapshot in made.run()]
        assert len(records) == 4 and any(record.get("refused") for record in records)


def test_hostile_clients_are_drawn_from_the_seed() -> None:
    drawn = [replace_seed(seed).federation.hostile for seed in range(20)]
    assert drawn == [replace_seed(seed).federation.hostile for seed in range(20)]
    assert all(len(set(clients)) == 2 for clients in drawn) and len(set(drawn)) > 5


def replace_seed(seed: int) -> Simulation:
    return simulate(
        module(), dataset(), clients=5, rounds=1, steps=1, batch=8, attack=Inverse(), hostile=2, seed=seed, device="cpu"
    )


def test_an_oracle_counts_the_honest_alone() -> None:
    federation = simulation(FedVote(), Inverse(), oracle=True)
    snapshots = list(federation.run())
    for attack in (LabelFlip(), Nothing()):
        assert_same(list(simulation(FedVote(), attack, oracle=True).run())[-1].state, snapshots[-1].state)
    weights = snapshots[-1].record["vote_weight"]
    assert sorted(weights) == [client for client in range(5) if client not in federation.federation.hostile]


@pytest.mark.parametrize("name", [name for name, attack in ATTACKS.items() if not attack.trains])
@pytest.mark.parametrize("method", [FedVote(), FedVote(votes="ternary"), FedAvg(by_samples=True)], ids=str)
def test_attackers_that_do_not_train_send_the_same_as_if_they_did(
    name: str, method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    attack = ATTACKS[name]()
    federation = simulation(method, attack)
    assert federation.idle(range(5)) == list(federation.federation.hostile)
    spared = list(federation.run())[-1].state
    monkeypatch.setattr(type(attack), "trains", True)
    assert federation.idle(range(5)) == []
    assert_close(list(federation.run())[-1].state, spared)  # sums of larger stacks may be rounded otherwise


def test_attackers_among_themselves_train() -> None:
    federation = simulation(FedVote(), ATTACKS["omniscient"]())
    assert federation.idle(federation.federation.hostile) == []


def test_poisoned_labels_reach_hostile_clients_and_no_others() -> None:
    federation = simulation(FedAvg(), LabelFlip()).federation
    keys = [Key(0, 1, client) for client in range(5)]
    poisoned = federation.batches(federation.data.train, keys)
    clean = replace(federation, hostile=()).batches(federation.data.train, keys)
    for step in range(3):
        (x, y), (x_clean, y_clean) = poisoned.at(step), clean.at(step)
        assert torch.equal(x, x_clean)
        for client in range(5):
            assert torch.equal(y[client], 2 - y_clean[client] if client in federation.hostile else y_clean[client])


def test_inverted_ballots_lose_weight_to_those_of_the_honest() -> None:
    method = FedVote(reputation=Proportional())
    federation = simulate(
        module(), dataset(), method, clients=5, rounds=4, steps=5, batch=8, attack=Inverse(), hostile=1, device="cpu"
    )
    weights = list(federation.run())[-1].record["vote_weight"]
    (hostile,) = federation.federation.hostile
    assert weights[hostile] < min(weight for client, weight in weights.items() if client != hostile)


def test_a_run_names_its_hostile_clients_for_the_report(tmp_path: Path) -> None:
    settings = [
        "rounds=1",
        "local.steps=1",
        "federation.clients=5",
        "federation.hostile=2",
        "attack=inverse",
    ]
    list(run(read("quickstart", settings), RunFolder(tmp_path), device="cpu"))
    assert len(json.loads((tmp_path / "clients.json").read_text())["hostile"]) == 2
    assert len(json.loads((tmp_path / "metrics.jsonl").read_text())["vote_weight"]) == 5
    assert read(str(tmp_path / "config.toml")) == read("quickstart", settings)


@pytest.mark.parametrize("hostile", [-1, 5, 6])
def test_more_hostile_clients_than_leave_one_honest_are_refused(hostile: int) -> None:
    with pytest.raises(ConfigError, match=f"hostile is {hostile}, expected 0 to 4"):
        simulation(hostile=hostile)


@dataclass(frozen=True)
class Indices(FedAvg):
    """Clients send which of their weights are positive, as whole numbers, with or without a model beside."""

    alone: bool = False

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        ups, memory = super().local(network, down, batches, memory, keys)
        index = {"index": (ups["voted"] > 0).to(torch.int16)}
        return index if self.alone else ups | index, memory

    def merge(self, state: State, key: Key) -> Merge:
        return AllAtOnce(lambda ups, clients: state)

    def wire(self, network: Network) -> Wire:
        models: dict[str, Codec] = {"voted": Float32(network.D), "float": Float32(network.F)}
        return FixedWire({**({} if self.alone else models), "index": Integers(network.D)}, models)


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name != "label-flip"])
def test_indices_have_no_opposite_and_stop_no_run(attack: str) -> None:
    for snapshot in simulation(Indices(), ATTACKS[attack]()).run():
        assert "refused" not in snapshot.record


def test_where_nothing_has_an_opposite_an_attack_is_refused_in_a_sentence() -> None:
    with pytest.raises(ConfigError, match="attack Inverse forges votes or floats, but Indices sends index"):
        list(simulation(Indices(alone=True), Inverse()).run())


def test_models_over_a_fixed_wire_are_turned_about_what_was_broadcast() -> None:
    network = Network(module())
    down = {"voted": network.start.voted, "float": network.start.floats}
    assert_same(Indices().wire(network).unmoved(down), down)
    assert Indices(alone=True).wire(network).unmoved(down) == {}
