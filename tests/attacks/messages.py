"""Messages of three weights, and what an attack makes of them."""

from __future__ import annotations

import torch

from fedvote.attacks import Attack, Seen
from fedvote.core import Message
from fedvote.randomness import Key
from fedvote.reputation import Reputation
from tests.toy import assert_same, copied

KEYS = [Key(0, 7, 3), Key(0, 7, 5)]


def votes(*rows: list[int]) -> Message:
    return {"votes": torch.tensor(rows, dtype=torch.int8)}


def floats(*rows: list[float]) -> Message:
    return {"voted": torch.tensor(rows)}


def many(values: list[int], clients: int = 2, count: int = 4000, seed: int = 1) -> Message:
    """Votes drawn at random."""
    lots = torch.randint(len(values), (clients, count), generator=Key(seed).torch("votes"))
    return {"votes": torch.tensor(values, dtype=torch.int8)[lots]}


def leaning(clients: int, count: int = 400, seed: int = 1) -> Message:
    """Binary votes on weights of which each has its own probability, as clients who learn the same thing send them."""
    generator = Key(seed).torch("leaning")
    soft = 2 * torch.rand(count, generator=Key(0).torch("soft")) - 1
    return {"votes": torch.where(torch.rand(clients, count, generator=generator) < (soft + 1) / 2, 1, -1).char()}


def sent(
    attack: Attack,
    own: Message,
    honest: Message | None = None,
    *,
    round: int = 7,
    clients: int = 5,
    unmoved: Message | None = None,
    scales: tuple[str, ...] = (),
    rule: Reputation | None = None,
) -> Message:
    """What as many hostile clients as have a row in `own` send; nothing else may change by it."""
    hostile = len(next(iter(own.values())))
    keys = [Key(0, round, client) for client in range(3, 3 + 2 * hostile, 2)]
    before, seen = copied(own), copied(honest or {})
    theirs = [Key(0, round, client) for client in range(20, 40)]
    layers = {"first": slice(0, 2), "second": slice(2, min(map(len, (row[0] for row in own.values()))))}
    attackers_view = Seen(own, honest or {}, keys, clients, unmoved or {}, scales, rule, (), layers, theirs)
    message = attack.tamper(attackers_view)
    assert_same(own, before)
    assert_same(honest or {}, seen)
    assert {name: (rows.shape, rows.dtype) for name, rows in message.items()} == {
        name: (rows.shape, rows.dtype) for name, rows in own.items()
    }
    return message
