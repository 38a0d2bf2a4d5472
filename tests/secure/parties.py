"""The clients and the server of a secure tally, with random numbers that follow from a seed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property

import torch
from torch import Tensor

from fedvote.randomness import Key
from fedvote.secure.answered import Answered
from fedvote.secure.client_steps import help_unmask, mask_ballot
from fedvote.secure.in_process import key_pair, nonce, seeded
from fedvote.secure.messages import SignedKey
from fedvote.secure.server_steps import MaskedTally
from fedvote.secure.session import Session, Terms
from fedvote.secure.shamir import Entropy
from fedvote.secure.signed_keys import Witness


@dataclass
class Parties:
    clients: int
    terms: Terms
    round: int = 1
    seed: int = 0
    answered: dict[int, Answered] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pairs = {client: key_pair(self.seed, client) for client in range(self.clients)}
        self.keys = {client: SignedKey(pair.public) for client, pair in self.pairs.items()}
        self.server = MaskedTally(self.session, self.keys)

    @cached_property
    def session(self) -> Session:
        return Session(self.terms, self.round, nonce(Key(self.seed, self.round)), tuple(range(self.clients)))

    @cached_property
    def ballots_KD(self) -> Tensor:
        draw = Key(self.seed, self.round).torch("ballots")
        return torch.randint(0, self.terms.largest + 1, (self.clients, self.terms.count), generator=draw)

    def entropy(self, client: int) -> Entropy:
        return seeded(Key(self.seed, self.round, client), "shares")

    def ballot(self, client: int, numbers_n: Tensor | None = None) -> bytes:
        numbers_n = self.ballots_KD[client] if numbers_n is None else numbers_n
        opening = self.server.opening(client)
        return self.answer(client, opening, numbers_n)

    def answer(self, client: int, opening: bytes, numbers_n: Tensor) -> bytes:
        """A client's answer to an opening, honest or not."""
        key, trained = self.pairs[client], (self.round, self.session.broadcast)
        return mask_ballot(key, client, opening, self.terms, trained, numbers_n, self.entropy(client), Witness())

    def vote(self, without: Collection[int] = ()) -> None:
        for client in range(self.clients):
            if client not in without:
                self.server.add(self.ballot(client), client)

    def shares(self, helper: int, request: bytes | None = None) -> bytes:
        known = self.answered.get(helper, Answered())
        request = request or self.server.request(helper)
        answer, self.answered[helper] = help_unmask(self.pairs[helper], helper, request, self.terms, known, Witness())
        return answer

    def unmask(self, without: Collection[int] = ()) -> Tensor:
        for helper in range(self.clients):
            if helper not in without:
                self.server.take_shares(self.shares(helper), helper)
        return self.server.sums()

    def expected(self, without: Collection[int] = ()) -> Tensor:
        return self.ballots_KD[[client for client in range(self.clients) if client not in without]].sum(0)


def parties(
    clients: int, count: int = 100, largest: int = 1, neighbours: int = 0, round: int = 1, seed: int = 0
) -> Parties:
    return Parties(clients, Terms("a run", count, largest, neighbours), round, seed)
