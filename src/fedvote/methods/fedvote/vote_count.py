"""Counting the ballots of a round, by both options of Algorithm 1.

Option I counts equal votes: a ballot is added to the tally when it arrives, and forgotten. Option II weighs ballots by
reputation: they are kept, packed, until the round closes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from fedvote.core import Message, State
from fedvote.method import AllAtOnce, Merge
from fedvote.methods.fedvote.late_votes import LateVotes
from fedvote.methods.fedvote.trained_floats import merged_floats
from fedvote.methods.fedvote.vote_result import Counted, vote
from fedvote.packed import Counter, Packed, pack
from fedvote.packed.shelf import Shelf
from fedvote.quantize import tally
from fedvote.randomness import Key
from fedvote.reputation import Ballots, rule_of
from fedvote.reputation.reputation import MEMORY, check_verdict, memory_in

if TYPE_CHECKING:
    from fedvote.methods.fedvote import FedVote


def empty_count(method: FedVote, state: State, key: Key) -> Merge:
    """A count without ballots. On a GPU all ballots of a round are there already, as one tensor."""
    if rule_of(method) is None and not method.train_float:
        return (CountOnTime if method.influence.binary_tally_only else Count)(method, state, key)
    if state["level"].device.type == "cpu":
        return Judged(method, state, key)
    return AllAtOnce(lambda ups, clients: judged(method, state, key, ups["votes"], ups.get("float"), clients))


class Count(Merge):
    """Option I, lambda_m = 1/M: ballots are added to the tally as they arrive, and not kept."""

    def __init__(self, method: FedVote, state: State, key: Key):
        self._method, self._state, self._key = method, state, key
        self.setting_without_draws = "method.counts = votes" if method.counts == "changes" else ""
        N, D, device = len(state["vote_weight"]), len(state["level"]), state["level"].device
        self._counter = Counter(D, method.alphabet, N) if device.type == "cpu" else None
        self._tally_VD = torch.zeros((len(method.alphabet), 1), device=device)  # of ballots outside the counter
        self._clients: list[int] = []
        self._late: list[LateVotes] = []

    def add_late(self, ups: Message, clients: Sequence[int], weight: float, state: State, key: Key) -> None:
        votes = pack(ups["votes"], self._method.alphabet)
        self._late += [LateVotes(client, weight, votes.row(k), state, key) for k, client in enumerate(clients)]

    def add(self, ups: Message, clients: Sequence[int]) -> None:
        # sums of whole numbers are exact in float32, so their order does not matter
        votes_KD, alphabet = ups["votes"], self._method.alphabet
        if self._counter is not None:
            self._counter.add(pack(votes_KD, alphabet))
        else:
            ones_K = torch.ones(len(clients), device=votes_KD.device)
            self._tally_VD = self._tally_VD + tally(votes_KD, ones_K, alphabet)
        self._clients = [*self._clients, *clients]

    def add_sums(self, sums: Message, clients: Sequence[int]) -> None:
        self._tally_VD = self._tally_VD + _with_first(sums["votes"].float(), len(clients))
        self._clients = [*self._clients, *clients]

    def close(self) -> State:
        clients, tally_VD = sorted(self._clients), self._tally_VD
        if self._counter is not None:
            tally_VD = tally_VD + _with_first(self._counter.counts().float(), self._counter.ballots)
        equal_K = torch.ones(len(clients), device=tally_VD.device)
        late = sorted(self._late, key=lambda ballot: (ballot.client, ballot.key.round))  # one order, so the same bits
        return vote(self._method, self._state, self._key, Counted(tally_VD, tally_VD, equal_K, clients, late))


class CountOnTime(Count):
    """Takes no late ballots: what one adds to the tally may lie beyond any vote."""

    add_late = Merge.add_late


class Judged(Merge):
    """Option II: ballots are kept packed until the round closes, because the reputation rule compares them."""

    def __init__(self, method: FedVote, state: State, key: Key):
        self._method, self._state, self._key = method, state, key
        self._shelf = Shelf(len(state["level"]), method.alphabet)
        self._floats: dict[int, Tensor] = {}

    def add(self, ups: Message, clients: Sequence[int]) -> None:
        self._shelf.add(pack(ups["votes"], self._method.alphabet), list(clients))
        self._floats |= dict(zip(clients, ups.get("float", ()), strict=False))

    def close(self) -> State:
        votes, clients = self._shelf.ballots()
        float_KF = torch.stack([self._floats[client] for client in clients]) if self._floats else None
        return judged(self._method, self._state, self._key, votes, float_KF, clients)


def _with_first(others_VD: Tensor, ballots: int) -> Tensor:
    """(V, D) a tally, from the counts of all values but the first."""
    return torch.cat([ballots - others_VD.sum(0, keepdim=True), others_VD])


def judged(
    method: FedVote,
    state: State,
    key: Key,
    votes_KD: Tensor | Packed,
    float_KF: Tensor | None,
    clients: list[int],
) -> State:
    """The next state, with lambda from the reputation rule: Option II."""
    memory = memory_in(state)
    clients_K = torch.tensor(clients, device=state["level"].device)
    layers = tuple(state["layers"].tolist()) if method.reputation.by_layer else ()
    ballots = Ballots(votes_KD, clients_K, method.soft(state), method.alphabet, layers)
    verdict = method.reputation.judge(memory, ballots, key)
    check_verdict(method.reputation, verdict, len(clients), memory)
    new_memory = {MEMORY + name: value for name, value in verdict.memory.items()}
    if not float(verdict.soft_K.sum()):  # nobody counts: the soft vote stays
        return state | {"vote_weight": torch.zeros_like(state["vote_weight"])} | new_memory

    lambda_K = _ones_if_equal(verdict.soft_K)
    soft_VD = tally(votes_KD, lambda_K, method.alphabet)
    same = torch.equal(verdict.hard_K, verdict.soft_K)
    hard_VD = soft_VD if same else tally(votes_KD, verdict.hard_K, method.alphabet)
    floats = {} if float_KF is None else merged_floats(method, state, float_KF, lambda_K)
    return vote(method, state, key, Counted(soft_VD, hard_VD, lambda_K, clients)) | floats | new_memory


def _ones_if_equal(weights_K: Tensor) -> Tensor:
    """0 and 1 if all positive weights are equal, so that tallies are whole numbers; otherwise the weights."""
    counted_K = weights_K > 0
    equal = bool((weights_K[counted_K] == weights_K.max()).all())
    return counted_K.to(weights_K.dtype) if equal else weights_K
