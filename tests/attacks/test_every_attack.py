"""What holds for every attack: a new one is tested by being in ATTACKS."""

from __future__ import annotations

import pickle
import sys
import tomllib

import pytest
import torch

from fedvote.attacks import (
    ATTACKS,
    Attack,
    Colluders,
    InnerProduct,
    Insider,
    Inverse,
    LabelFlip,
    LateLabels,
    MinMax,
    Random,
)
from fedvote.attacks.composite import Composite
from fedvote.core import Message
from fedvote.method import Method
from fedvote.methods import FedAvg, FedVote, SignSGD
from fedvote.randomness import Key
from fedvote.runs.config import Config
from fedvote.runs.toml_tables import as_table, build, to_toml
from tests.attacks.messages import leaning, many, sent
from tests.toy import Federation, assert_same, hostile_turn

VARIANTS: dict[str, Attack] = {
    "label-flip random": LabelFlip(pairs="random"),
    "colluders label-flip": Colluders(LabelFlip()),
    "colluders random": Colluders(Random()),
    "inner-product large": InnerProduct(epsilon=10),
    "min-max std strongest": MinMax("std", "strongest"),
    "min-max sign": MinMax("sign"),
    "insider strongest": Insider("strongest"),
    "late-labels": LateLabels(starts=1),  # before, it does nothing
}
EVERY = {name: kind() for name, kind in ATTACKS.items()} | VARIANTS
HONEST, HOSTILE = {0, 2, 4}, {1, 3}


@pytest.fixture(params=list(EVERY.values()), ids=list(EVERY))
def attack(request: pytest.FixtureRequest) -> Attack:
    made: Attack = request.param
    return made


def stacks(values: list[int]) -> tuple[Message, Message]:
    """Votes and floats of two hostile and three honest clients."""
    own, honest = many(values, 2, 200, seed=1), many(values, 3, 200, seed=2)
    weights = torch.randn(5, 30, generator=Key(3).torch("weights"))
    return own | {"float": weights[:2]}, honest | {"float": weights[2:]}


def test_an_attack_says_what_it_knows(attack: Attack) -> None:
    about = sys.modules[type(attack).__module__].__doc__ or ""
    assert "Knows " in about
    if not isinstance(attack, Composite):  # it is made of others, which say it themselves
        assert attack.omniscient == ("Knows every honest message" in about)
        assert attack.draws == ("random number" in about.partition("Knows ")[2])


def test_an_attack_goes_through_toml_and_pickle_unchanged(attack: Attack) -> None:
    config = Config(attack=attack)
    assert build(Config, tomllib.loads(to_toml(as_table(config)))) == config
    assert pickle.loads(pickle.dumps(attack)) == attack


@pytest.mark.parametrize("values", [[-1, 1], [-1, 0, 1]], ids=["binary", "ternary"])
def test_votes_stay_votes_and_floats_stay_finite(attack: Attack, values: list[int]) -> None:
    own, honest = stacks(values)
    for round in (1, 20):
        message = sent(attack, own, honest, round=round)
        assert set(message["votes"].unique().tolist()) <= set(values)
        assert message["float"].isfinite().all()


def test_an_attack_is_repeatable(attack: Attack) -> None:
    own, honest = stacks([-1, 1])
    assert_same(sent(attack, own, honest), sent(attack, own, honest))


@pytest.mark.parametrize("name", ["random", "partial", "a-little-is-enough", "inner-product"])
def test_what_is_drawn_is_drawn_anew_each_round_and_by_each_attacker(name: str) -> None:
    own = leaning(2)
    first, second = (sent(ATTACKS[name](), own, leaning(3, seed=2), round=round)["votes"] for round in (7, 8))
    assert not torch.equal(first, second) and not torch.equal(first[0], first[1])


def test_one_attacker_alone_can_attack(attack: Attack) -> None:
    own, honest = stacks([-1, 1])
    alone = {name: rows[:1] for name, rows in own.items()}
    one = {name: rows[:1] for name, rows in honest.items()}
    assert all(rows.isfinite().all() for rows in sent(attack, alone, one, clients=2).values())


@pytest.mark.parametrize("method", [FedVote(), FedAvg(), SignSGD()], ids=lambda method: type(method).__name__)
def test_who_is_not_omniscient_sends_the_same_whatever_others_send(attack: Attack, method: Method) -> None:
    federation = Federation(method)
    down, frames = federation.frames(federation.start(), 1, range(5))
    others = hostile_turn(Inverse(), method, federation.network, down, frames, HONEST, Key(0, 1))
    forged, again = (
        hostile_turn(attack, method, federation.network, down, known, HOSTILE, Key(0, 1)) for known in (frames, others)
    )
    assert all(forged[client] == frames[client] != again[client] == others[client] for client in HONEST)
    same = all(forged[client] == again[client] for client in HOSTILE)
    may_be_honest = isinstance(attack, Insider | LateLabels)  # if no flip passes; if it has little to hide
    honest = may_be_honest and all(forged[client] == frames[client] for client in HOSTILE)
    assert same != (attack.omniscient and not honest)


def test_where_nobody_is_honest_attackers_go_by_themselves(attack: Attack) -> None:
    federation = Federation(FedVote())
    down, frames = federation.frames(federation.start(), 1, range(2))
    forged = hostile_turn(attack, federation.method, federation.network, down, frames, {0, 1}, Key(0, 1))
    assert forged.keys() == {0, 1}
