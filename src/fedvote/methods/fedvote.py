"""FedVote: clients send votes, the server counts them. Algorithm 1, with Appendix A-C for ternary votes.

The server keeps the soft vote as whole numbers: level j of L stands for 2 p - 1 = 2 j / (L - 1) - 1. K equal binary
votes make L = K + 1 levels, K equal ternary votes 2 K + 1, both without loss. Votes of unequal weight, and the start,
are rounded to a declared grid, so that the server continues from exactly what clients decode.
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
MOST_LEVELS = 2**15
MEMORY = "reputation/"  # prefix of the state tensors that the reputation rule remembers


@dataclass(frozen=True)
class FedVote(Method):
    votes: Votes = "binary"  # -1 and +1; or "ternary": 0, too
    normalisation: Normalisation = field(default=Tanh(1.5), metadata={"registry": NORMALISATIONS})  # phi
    reputation: Reputation = field(default=Uniform(), metadata={"registry": REPUTATIONS})  # how ballots are weighed
    p_min: float = 0.001  # soft votes are clipped to [p_min, 1 - p_min]
    grid: int = 4097  # levels of a soft vote that is not a count of equal votes
    coding: Coding = "entropy"  # or "plain": whole bits, without the coder
    train_float: bool = False  # whether float weights are trained and averaged, or stay as the shared seed made them

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
        # the first soft vote: the seed's weights, each layer divided by its standard deviation
        soft_D = network.standardise(network.start.voted).clamp(-0.999, 0.999)
        state = {
            "level": to_level(soft_D, self.grid),
            "levels": torch.tensor([self.grid - 1], dtype=torch.int16, device=soft_D.device),
            "plurality": THRESHOLD[self.alphabet](soft_D),
            "float": network.start.floats,
            "vote_weight": torch.zeros(clients, device=soft_D.device),
        }
        remembered = self.reputation.init(clients)
        return state | {MEMORY + name: value.to(soft_D.device) for name, value in remembered.items()}

    def broadcast(self, state: State) -> Message:
        return {name: state[name] for name in ("level", "levels", *self._floats)}

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        phi, K = self.normalisation, batches.clients

        # h_m^(k,0) = phi^-1(2 p^(k) - 1)
        latent_D = phi.inverse(self.soft(down))

        # h_m^(k,t+1) = h_m^(k,t) - eta grad_h f_m(phi(h_m^(k,t)))
        start = [rows.expand(K, -1) for rows in (latent_D, *(down[name] for name in self._floats))]
        latent_KD, *trained = descend(self, network, start, batches)

        # w_m^(k,tau) = sto_rounding(phi(h_m^(k,tau)))
        up = {"votes": round_by_shared_random(phi(latent_KD), self.alphabet, keys)}
        return up | dict(zip(self._floats, trained, strict=True)), memory

    @layerwise
    def objective(self, network: Network, *weights: Any) -> Tensor:
        # f_m(phi(h)), h the latent weights
        h_D, *floats, x_B, y_B = weights
        phi = self.normalisation
        voted = phi(h_D) if isinstance(h_D, Tensor) else tuple(map(phi, h_D))
        return network.loss(voted, floats[0] if floats else network.start.floats, x_B, y_B)

    def merge(self, state: State, key: Key) -> Merge:
        if rule_of(self) is None and not self.train_float:
            return Count(self, state, key)
        return AllAtOnce(lambda ups, clients: self._weighed(state, key, ups, clients))

    def measure(self, before: State, after: State) -> dict[str, float]:
        flipped = (before["plurality"] != after["plurality"]).float().mean()

        # |2 p - 1|: 0 where votes are divided evenly, 1 where all are the same
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
        highest, most = int(message["level"].max()), int(message["levels"])
        if not highest <= most or most < 1:
            raise WireError(f"a soft vote of level {highest}, expected at most {most}, and that at least 1")
        return clip(from_level(message["level"], most + 1), self.p_min)

    def counted(
        self, state: State, key: Key, soft_VD: Tensor, hard_VD: Tensor, weights_K: Tensor, clients: Sequence[int]
    ) -> State:
        """The next state, from the tallies by which training continues (soft) and the network is deployed (hard)."""
        levels = self._levels(weights_K)
        clients_K = torch.tensor(clients, device=soft_VD.device)
        return state | {
            "level": to_level(soft_vote(soft_VD, self.alphabet), levels),
            "levels": torch.full_like(state["levels"], levels - 1),
            "plurality": plurality(hard_VD, self.alphabet, key.torch("tie", hard_VD.device)),
            "vote_weight": torch.zeros_like(state["vote_weight"]).index_copy(0, clients_K, weights_K / weights_K.sum()),
        }

    def _weighed(self, state: State, key: Key, ups: Message, clients: list[int]) -> State:
        """The next state, with ballots weighed by the reputation rule."""
        votes_KD = ups["votes"]
        remembered = {name.removeprefix(MEMORY): state[name] for name in state if name.startswith(MEMORY)}
        clients_K = torch.tensor(clients, device=votes_KD.device)
        verdict = self.reputation.judge(remembered, Ballots(votes_KD, clients_K, self.soft(state), self.alphabet), key)
        check_verdict(self.reputation, verdict, len(clients), remembered)

        weights_K = _shares(verdict.soft_K)
        soft_VD = tally(votes_KD, weights_K, self.alphabet)
        same = torch.equal(verdict.hard_K, verdict.soft_K)
        hard_VD = soft_VD if same else tally(votes_KD, verdict.hard_K, self.alphabet)
        floats = {"float": weighted_sum(weights_K / weights_K.sum(), ups["float"])} if self.train_float else {}
        memory = {MEMORY + name: value for name, value in verdict.memory.items()}
        return self.counted(state, key, soft_VD, hard_VD, weights_K, clients) | floats | memory

    @property
    def _floats(self) -> tuple[str, ...]:
        return ("float",) if self.train_float else ()

    def _levels(self, weights_K: Tensor) -> int:
        """How many values a soft vote by these weights can take, or the grid it is rounded to."""
        exact = (len(self.alphabet) - 1) * int(weights_K.count_nonzero()) + 1
        return exact if bool(((weights_K == 0) | (weights_K == 1)).all()) and exact <= MOST_LEVELS else self.grid


class Count(Merge):
    """One client, one vote: ballots are added to the tally as they come, and not kept."""

    def __init__(self, method: FedVote, state: State, key: Key):
        self._method, self._state, self._key = method, state, key
        self._tally_VD = torch.zeros(())
        self._clients: list[int] = []

    def add(self, ups: Message, clients: Sequence[int]) -> None:
        # sums of whole numbers, exact in float32 and so the same in any order
        votes_KD = ups["votes"]
        counted_VD = tally(votes_KD, torch.ones(len(votes_KD), device=votes_KD.device), self._method.alphabet)
        self._tally_VD = self._tally_VD + counted_VD if self._clients else counted_VD
        self._clients = [*self._clients, *clients]

    def close(self) -> State:
        clients, tally_VD = sorted(self._clients), self._tally_VD
        weights_K = torch.ones(len(clients), device=tally_VD.device)
        return self._method.counted(self._state, self._key, tally_VD, tally_VD, weights_K, clients)


def _shares(weights_K: Tensor) -> Tensor:
    """Ones where all who have a vote have the same, so that votes are counted in whole numbers; else the weights."""
    counted_K = weights_K > 0
    equal = bool((weights_K[counted_K] == weights_K.max()).all()) and bool((weights_K >= 0).all())
    return counted_K.to(weights_K.dtype) if equal else weights_K
