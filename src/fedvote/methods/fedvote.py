"""FedVote: clients send votes, the server counts them. Algorithm 1, with Appendix A-C for ternary votes.

The server keeps the soft vote p as whole numbers: level j of L stands for 2 p - 1 = 2 j / (L - 1) - 1. The paper's M
clients are a cohort of K here. K equal binary votes need L = K + 1 levels, K equal ternary votes 2 K + 1: no loss.
Votes of unequal weight, and p^(0), are rounded to a grid. So the server continues from exactly what clients decode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from fedvote.aggregate.mean import weighted_sum
from fedvote.core import Batches, Message, State, Weights
from fedvote.errors import ConfigError, WireError
from fedvote.method import AllAtOnce, Merge, Method, layerwise
from fedvote.methods.ballot_wire import BallotWire
from fedvote.network.network import Network
from fedvote.quantize import (
    BINARY,
    NORMALISATIONS,
    TERNARY,
    THRESHOLD,
    Alphabet,
    Normalisation,
    Tanh,
    clip,
    from_level,
    plurality,
    round_by_shared_random,
    soft_vote,
    tally,
    to_level,
)
from fedvote.randomness import Key
from fedvote.reputation import REPUTATIONS, Ballots, Reputation, Uniform, rule_of
from fedvote.reputation.reputation import check_verdict
from fedvote.training.descent import descend
from fedvote.wire import Coding

Votes = Literal["binary", "ternary"]
ALPHABETS: dict[str, Alphabet] = {"binary": BINARY, "ternary": TERNARY}
MOST_LEVELS = 2**15  # of a soft vote: the highest level fits int16
MEMORY = "reputation/"  # prefix of the state tensors that belong to the reputation rule


@dataclass(frozen=True)
class FedVote(Method):
    votes: Votes = "binary"  # -1 and +1; or "ternary": -1, 0 and +1
    normalisation: Normalisation = field(default=Tanh(1.5), metadata={"registry": NORMALISATIONS})  # phi
    reputation: Reputation = field(default=Uniform(), metadata={"registry": REPUTATIONS})  # lambda: ballots' weights
    p_min: float = 0.001  # soft votes are clipped to [p_min, 1 - p_min]
    grid: int = 4097  # levels of any soft vote that is not a count of equal votes
    coding: Coding = "entropy"  # or "plain": whole bits
    train_float: bool = False  # train and average the float weights; false: they stay as the shared seed made them

    explains = {  # noqa: RUF012  (a constant)
        "weights_flipped": "Weights flipped: the share of deployed weights that changed in the round.",
        "votes_decided": "Votes decided: the mean of |2p - 1|; 0 if votes are split evenly, 1 if all agree.",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.p_min < 0.5:
            raise ConfigError(f"p_min is {self.p_min}, expected a number between 0 and 0.5; the paper has 0.001")
        if not 3 <= self.grid <= MOST_LEVELS:
            raise ConfigError(f"grid is {self.grid}, expected 3 to {MOST_LEVELS} levels")

    @property
    def alphabet(self) -> Alphabet:
        return ALPHABETS[self.votes]

    def init(self, network: Network, clients: int) -> State:
        # 2 p^(0) - 1: the initial weights, each layer divided by its standard deviation
        soft_D = network.standardise(network.start.voted).clamp(-0.999, 0.999)
        state = {
            "level": to_level(soft_D, self.grid),
            "levels": torch.tensor([self.grid - 1], dtype=torch.int16, device=soft_D.device),
            "plurality": THRESHOLD[self.alphabet](soft_D),
            "float": network.start.floats,
            "vote_weight": torch.zeros(clients, device=soft_D.device),
        }
        memory = self.reputation.init(clients)
        return state | {MEMORY + name: value.to(soft_D.device) for name, value in memory.items()}

    def broadcast(self, state: State) -> Message:
        return {name: state[name] for name in ("level", "levels", *self._floats)}

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        phi, K = self.normalisation, batches.clients

        # h_m^(k,0) = phi^-1(2 p^(k) - 1)
        latent_D = phi.inverse(self.soft(down))

        # h_m^(k,t+1) = h_m^(k,t) - eta grad_h f_m(phi(h_m^(k,t)); xi_m^(k,t)),  t = 0 .. tau - 1
        start = [rows.expand(K, -1) for rows in (latent_D, *(down[name] for name in self._floats))]
        latent_KD, *trained = descend(self, network, start, batches)

        # w~_m^(k,tau) = phi(h_m^(k,tau)),  w_m^(k,tau) = sto_rounding(w~_m^(k,tau))
        up = {"votes": round_by_shared_random(phi(latent_KD), self.alphabet, keys)}
        return up | dict(zip(self._floats, trained, strict=True)), memory

    @layerwise
    def objective(self, network: Network, *weights: Any) -> Tensor:
        # f_m(phi(h); xi), with a batch xi = (x, y)
        h_D, *floats, x_B, y_B = weights
        phi = self.normalisation
        voted = phi(h_D) if isinstance(h_D, Tensor) else tuple(map(phi, h_D))
        return network.loss(voted, floats[0] if floats else network.start.floats, x_B, y_B)

    def merge(self, state: State, key: Key) -> Merge:
        if rule_of(self) is None and not self.train_float:
            return Count(self, state, key)
        return AllAtOnce(lambda ups, clients: self._weighted(state, key, ups, clients))

    def measure(self, before: State, after: State) -> dict[str, float]:
        flipped = (before["plurality"] != after["plurality"]).float().mean()

        # |2 p - 1|: 0 for an even split, 1 for a unanimous vote
        decided = from_level(after["level"], int(after["levels"]) + 1).abs().mean()
        return {"weights_flipped": float(flipped), "votes_decided": float(decided)}

    def models(self, state: State) -> dict[str, Weights]:
        return {
            "deployed": Weights(state["plurality"].float(), state["float"]),
            "float": Weights(self.soft(state), state["float"]),
        }

    def wire(self, network: Network) -> BallotWire:
        return BallotWire(network, self.alphabet, self.coding == "entropy", self._floats, self.soft)

    def soft(self, message: Message) -> Tensor:
        """clip(2 p - 1): the normalised weights that a round starts from."""
        highest, limit = int(message["level"].max()), int(message["levels"])
        if not highest <= limit or limit < 1:
            raise WireError(f"the soft vote has level {highest}, expected at most {limit}, and that to be 1 or more")
        return clip(from_level(message["level"], limit + 1), self.p_min)

    def next_state(
        self, state: State, key: Key, soft_VD: Tensor, hard_VD: Tensor, lambda_K: Tensor, clients: Sequence[int]
    ) -> State:
        """The function vote of Algorithm 1, from the tallies of the soft vote and of the plurality (hard)."""
        levels = self._levels(lambda_K)
        clients_K = torch.tensor(clients, device=soft_VD.device)
        return state | {
            # p_i^(k+1) = sum_m lambda_m^(k) 1(w_{m,i}^(k,tau) = 1), kept as 2 p - 1
            "level": to_level(soft_vote(soft_VD, self.alphabet), levels),
            "levels": torch.full_like(state["levels"], levels - 1),
            # w_i^(k+1) = sign(sum_m w_{m,i}^(k,tau)), ties broken at random
            "plurality": plurality(hard_VD, self.alphabet, key.torch("tie", hard_VD.device)),
            "vote_weight": torch.zeros_like(state["vote_weight"]).index_copy(0, clients_K, lambda_K / lambda_K.sum()),
        }

    def _weighted(self, state: State, key: Key, ups: Message, clients: list[int]) -> State:
        """The next state, with lambda from the reputation rule: Option II."""
        votes_KD = ups["votes"]
        memory = {name.removeprefix(MEMORY): state[name] for name in state if name.startswith(MEMORY)}
        clients_K = torch.tensor(clients, device=votes_KD.device)
        verdict = self.reputation.judge(memory, Ballots(votes_KD, clients_K, self.soft(state), self.alphabet), key)
        check_verdict(self.reputation, verdict, len(clients), memory)

        lambda_K = _ones_if_equal(verdict.soft_K)
        soft_VD = tally(votes_KD, lambda_K, self.alphabet)
        same = torch.equal(verdict.hard_K, verdict.soft_K)
        hard_VD = soft_VD if same else tally(votes_KD, verdict.hard_K, self.alphabet)
        floats = {"float": weighted_sum(lambda_K / lambda_K.sum(), ups["float"])} if self.train_float else {}
        new_memory = {MEMORY + name: value for name, value in verdict.memory.items()}
        return self.next_state(state, key, soft_VD, hard_VD, lambda_K, clients) | floats | new_memory

    @property
    def _floats(self) -> tuple[str, ...]:
        return ("float",) if self.train_float else ()

    def _levels(self, lambda_K: Tensor) -> int:
        """L: the number of values that a count of equal votes can take; otherwise the grid."""
        exact = (len(self.alphabet) - 1) * int(lambda_K.count_nonzero()) + 1
        return exact if bool(((lambda_K == 0) | (lambda_K == 1)).all()) and exact <= MOST_LEVELS else self.grid


class Count(Merge):
    """Option I, lambda_m = 1/M: ballots are added to the tally as they arrive, and not kept."""

    def __init__(self, method: FedVote, state: State, key: Key):
        self._method, self._state, self._key = method, state, key
        self._tally_VD = torch.zeros(())
        self._clients: list[int] = []

    def add(self, ups: Message, clients: Sequence[int]) -> None:
        # sums of whole numbers are exact in float32, so their order does not matter
        votes_KD = ups["votes"]
        added_VD = tally(votes_KD, torch.ones(len(votes_KD), device=votes_KD.device), self._method.alphabet)
        self._tally_VD = self._tally_VD + added_VD if self._clients else added_VD
        self._clients = [*self._clients, *clients]

    def close(self) -> State:
        clients, tally_VD = sorted(self._clients), self._tally_VD
        equal_K = torch.ones(len(clients), device=tally_VD.device)
        return self._method.next_state(self._state, self._key, tally_VD, tally_VD, equal_K, clients)


def _ones_if_equal(weights_K: Tensor) -> Tensor:
    """0 and 1 if all positive weights are equal, so that tallies are whole numbers; otherwise the weights."""
    counted_K = weights_K > 0
    equal = bool((weights_K[counted_K] == weights_K.max()).all()) and bool((weights_K >= 0).all())
    return counted_K.to(weights_K.dtype) if equal else weights_K
