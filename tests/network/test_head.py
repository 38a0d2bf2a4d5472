"""The layer that stays float is the last one on the way to the output, wherever it is registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from fedvote import FedAvg, FedVote
from fedvote.errors import ModelError
from fedvote.federation import Federation
from fedvote.network.network import Network
from fedvote.plan import Plan
from tests.network.twenty_networks import Net
from tests.toy import dataset


def two(inputs: int = 6, outputs: int = 3) -> dict[str, nn.Module]:
    return {"head": nn.Linear(5, outputs), "body": nn.Linear(inputs, 5, bias=False)}


def tied() -> nn.Module:
    made: Any = Net(
        lambda m, x: m.head(m.embed(x.long()).mean(1))[:, :3], embed=nn.Embedding(10, 4), head=nn.Linear(4, 10)
    )
    made.head.weight = made.embed.weight
    return made  # type: ignore[no-any-return]


CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], set[str]]] = {
    "head first": (lambda: Net(lambda m, x: m.head(m.body(x).relu()), **two()), (6,), {"body.weight"}),
    "1 x 1 convolution before pooling": (
        lambda: Net(
            lambda m, x: m.out(m.conv(x) * m.gate(x.mean((2, 3))).sigmoid()[..., None, None]).mean((2, 3)),
            out=nn.Conv2d(4, 3, 1),
            conv=nn.Conv2d(2, 4, 3),
            gate=nn.Linear(2, 4),
        ),
        (2, 5, 5),
        {"conv.weight", "gate.weight"},
    ),
    "used as a function": (
        lambda: Net(lambda m, x: F.linear(m.body(x).relu(), m.head.weight, m.head.bias), **two()),
        (6,),
        {"body.weight"},
    ),
    "a layer that never runs": (
        lambda: Net(lambda m, x: m.head(m.body(x)), **two(), unused=nn.Linear(7, 7)),
        (6,),
        {"body.weight", "unused.weight"},
    ),
    "attention, whose last projection torch never calls": (
        lambda: Net(
            lambda m, x: m.attention(*[m.embed(x)[:, None]] * 3)[0][:, 0, :3],
            attention=nn.MultiheadAttention(4, 2, batch_first=True),
            embed=nn.Linear(6, 4),
        ),
        (6,),
        {"embed.weight"},
    ),
    "a sequence, and a scale after the head": (
        lambda: Net(
            lambda m, x: m.norm(m.head(m.body(x[..., None].expand(-1, -1, 6))).mean(1)), **two(), norm=nn.LayerNorm(3)
        ),
        (4,),
        {"body.weight"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_all_but_the_last_layer_is_voted_on(name: str) -> None:
    make, shape, voted = CASES[name]
    assert {slot.name for slot in Network(make(), shape=shape).voted} == voted


def two_paths() -> nn.Module:
    return Net(lambda m, x: m.wide(x) + m.head(m.body(x).relu()), **two(), wide=nn.Linear(6, 3))


@pytest.mark.parametrize(
    ("make", "shape", "saying", "fix", "voted"),
    [
        (two_paths, (6,), "several last layers .head, wide.*keep_float=", ["head", "wide"], {"body.weight"}),
        (tied, (4,), r'head, shares its weight with embed.*keep_float=\["head"\]', [], {"embed.weight"}),
    ],
    ids=["two paths", "tied to the input"],
)
def test_where_it_is_not_clear_a_sentence_asks_and_its_fix_works(
    make: Callable[[], nn.Module], shape: tuple[int, ...], saying: str, fix: list[str], voted: set[str]
) -> None:
    with pytest.raises(ModelError, match=saying):
        Network(make(), shape=shape)
    assert {slot.name for slot in Network(make(), keep_float=fix, shape=shape).voted} == voted
    assert Network(make(), shape=shape, votes=False).D > 0


def test_a_method_without_votes_takes_any_network() -> None:
    plan = Plan.of(clients=5, rounds=1, batch=8)
    alone = nn.Linear(6, 3)
    with pytest.raises(ModelError, match=r"no weights to vote on.*keep_float=\[\] to vote on the last layer as well$"):
        Federation.of(alone, dataset(), FedVote(), plan)
    assert Federation.of(alone, dataset(), FedAvg(), plan).network.D == 21


@pytest.mark.parametrize(
    ("vote", "named"),
    [
        (("lstm.weight_?h_l0",), {"lstm.weight_ih_l0", "lstm.weight_hh_l0"}),
        (("lstm",), {"lstm.weight_ih_l0", "lstm.weight_hh_l0"}),
        (("embed", "start"), {"embed.weight", "start"}),
    ],
)
def test_other_weights_are_voted_on_by_name(vote: tuple[str, ...], named: set[str]) -> None:
    made: Any = Net(
        lambda m, x: m.head(m.lstm(m.embed(x.long()) + m.start)[0][:, -1]),
        embed=nn.Embedding(9, 4), lstm=nn.LSTM(4, 5, batch_first=True), head=nn.Linear(5, 3),
    )  # fmt: skip
    made.start = nn.Parameter(torch.zeros(1, 4))
    assert {slot.name for slot in Network(made, vote=vote, shape=(6,)).voted} == named
    with pytest.raises(ModelError, match=r"vote names 'bias', expected a weight.*there are: .*lstm.weight_ih_l0"):
        Network(made, vote=("bias",), shape=(6,))
    with pytest.raises(ModelError, match=r"vote is 'lstm', expected a list"):
        Network(made, vote="lstm", shape=(6,))
