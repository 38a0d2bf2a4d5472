"""FedVote: clients send votes, the server counts them. Algorithm 1, with Appendix A-C for ternary votes.

The server keeps the soft vote as whole numbers: level j of L stands for 2 p - 1 = 2 j / (L - 1) - 1. K equal binary
votes make L = K + 1 levels, K equal ternary ones 2 K + 1, both without loss; ballots of no weight do not count. Votes
of other weights, and the start, are rounded to a declared grid, so that what clients decode is exactly what the server
goes on with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from fedvote.aggregate.mean import weighted_sum
from fedvote.codecs import Binary, EntropyVotes, Float32, IfChanged, Integers, Tallies, Ternary
from fedvote.codecs.vote_contexts import contexts
from fedvote.core import Batches, Codec, Message, State, Weights
from fedvote.errors import ConfigError, WireError
from fedvote.method import Method, layerwise
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
from fedvote.randomness import Key, shared_random
from fedvote.reputation import REPUTATIONS, Ballots, Reputation, Uniform
from fedvote.reputation.reputation import check_verdict
from fedvote.training.descent import descend

ALPHABETS: dict[str, Alphabet] = {"binary": BINARY, "ternary": TERNARY}
BALLOT_CODECS: dict[str, type[Binary] | type[Ternary]] = {"binary": Binary, "ternary": Ternary}
MOST_LEVELS = 2**15
MEMORY = "reputation/"  # in front of the names of what the reputation rule remembers


@dataclass(frozen=True)
class FedVote(Method):
    votes: str = "binary"  # -1 and +1; or "ternary": 0, too
    normalisation: Normalisation = field(default=Tanh(1.5), metadata={"registry": NORMALISATIONS})  # phi
    reputation: Reputation = field(default=Uniform(), metadata={"registry": REPUTATIONS})  # how ballots are weighed
    p_min: float = 0.001  # soft votes are clipped to [p_min, 1 - p_min]
    grid: int = 4097  # levels of a soft vote that is not a count of equal votes
    coding: str = "entropy"  # or "plain": whole bits, without the coder
    train_float: bool = False  # whether float weights are trained and averaged, or stay as the shared seed made them

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.votes not in ALPHABETS:
            raise ConfigError(f"votes is {self.votes!r}, expected one of: {', '.join(ALPHABETS)}")
        if self.coding not in ("entropy", "plain"):
            raise ConfigError(f"coding is {self.coding!r}, expected entropy or plain")
        if not 0 < self.p_min < 0.5:
            raise ConfigError(f"p_min is {self.p_min}, expected a number between 0 and 0.5; the paper has 0.001")
        if not 3 <= self.grid <= MOST_LEVELS:
            raise ConfigError(f"grid is {self.grid}, expected 3 to {MOST_LEVELS} levels")

    @property
    def alphabet(self) -> Alphabet:
        return ALPHABETS[self.votes]

    def init(self, network: Network, clients: int) -> State:
        soft_D = self._first(network)
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

    def merge(self, state: State, ups: Message, clients: Sequence[int], key: Key) -> State:
        votes_KD = ups["votes"]
        clients_K = torch.tensor(clients, device=votes_KD.device)
        remembered = {name.removeprefix(MEMORY): state[name] for name in state if name.startswith(MEMORY)}
        verdict = self.reputation.judge(remembered, Ballots(votes_KD, clients_K, self.soft(state), self.alphabet), key)
        check_verdict(self.reputation, verdict, len(clients), remembered)

        soft_K = _shares(verdict.soft_K)
        soft_VD = tally(votes_KD, soft_K, self.alphabet)
        hard_VD = (
            soft_VD if torch.equal(verdict.hard_K, verdict.soft_K) else tally(votes_KD, verdict.hard_K, self.alphabet)
        )

        levels = self._levels(soft_K)
        weight_K = soft_K / soft_K.sum()
        merged = {
            "level": to_level(soft_vote(soft_VD, self.alphabet), levels),
            "levels": torch.full_like(state["levels"], levels - 1),
            "plurality": plurality(hard_VD, self.alphabet, key.torch("tie", votes_KD.device)),
            "float": weighted_sum(weight_K, ups["float"]) if self.train_float else state["float"],
            "vote_weight": torch.zeros_like(state["vote_weight"]).index_copy(0, clients_K, weight_K),
        }
        return merged | {MEMORY + name: value for name, value in verdict.memory.items()}

    def measure(self, before: State, ups: Message, after: State) -> dict[str, float]:
        flipped = (before["plurality"] != after["plurality"]).float().mean()

        # |2 p - 1|: 0 where votes are divided evenly, 1 where all are the same
        decided = from_level(after["level"], int(after["levels"]) + 1).abs().mean()
        return {"weights_flipped": float(flipped), "votes_decided": float(decided)}

    def models(self, state: State) -> dict[str, Weights]:
        return {
            "deployed": Weights(state["plurality"].float(), state["float"]),
            "float": Weights(self.soft(state), state["float"]),
        }

    def uplink(self, network: Network, down: Message, key: Key) -> dict[str, Codec]:
        ballot = self.ballot_codec(down, key) if self.coding == "entropy" else BALLOT_CODECS[self.votes](network.D)
        return {"votes": ballot} | {name: Float32(network.F) for name in self._floats}

    @property
    def uplinks_differ(self) -> bool:
        return self.coding == "entropy"

    @property
    def keeps_broadcast(self) -> bool:
        return self.coding == "entropy"

    def downlink(self, network: Network, held: Message | None = None) -> dict[str, Codec]:
        level: Codec
        if self.coding == "plain":
            level = Integers(network.D)
        elif held is None:
            level = Tallies(network.D)
        else:
            level = Tallies(network.D, held["level"], int(held["levels"]) + 1)
        known = IfChanged(level, held["level"] if held else None)
        return {"level": known, "levels": Integers(1)} | {name: Float32(network.F) for name in self._floats}

    def unmoved(self, down: Message) -> Message:
        return {"votes": self.soft(down)} | {name: down[name] for name in self._floats}

    def vote_weights(self, state: State) -> Tensor | None:
        return state["vote_weight"]

    @property
    def rule(self) -> Reputation | None:
        return None if isinstance(self.reputation, Uniform) else self.reputation

    def soft(self, message: Message) -> Tensor:
        """clip(2 p - 1): the normalised weights that a round starts from."""
        highest, most = int(message["level"].max()), int(message["levels"])
        if not highest <= most or most < 1:
            raise WireError(f"a soft vote of level {highest}, expected at most {most}, and that at least 1")
        return clip(from_level(message["level"], int(message["levels"]) + 1), self.p_min)

    def ballot_codec(self, down: Message, key: Key) -> EntropyVotes:
        """For the ballot of one client: both sides know its lots, and what it started from."""
        levels, level_D = int(down["levels"]) + 1, down["level"]
        return EntropyVotes(
            self.alphabet, *contexts(level_D, levels, shared_random(key, len(level_D), level_D.device), self.alphabet)
        )

    @staticmethod
    def _first(network: Network) -> Tensor:
        """The soft vote of round 1, which the shared seed makes."""
        return network.standardise(network.start.voted).clamp(-0.999, 0.999)

    @property
    def _floats(self) -> tuple[str, ...]:
        return ("float",) if self.train_float else ()

    def _levels(self, soft_K: Tensor) -> int:
        """How many values a soft vote by these weights can take, or the grid it is rounded to."""
        exact = (len(self.alphabet) - 1) * int(soft_K.count_nonzero()) + 1
        return exact if bool(((soft_K == 0) | (soft_K == 1)).all()) and exact <= MOST_LEVELS else self.grid


def _shares(weights_K: Tensor) -> Tensor:
    """Ones where all who have a vote have the same, so that votes are counted in whole numbers; else the weights."""
    counted_K = weights_K > 0
    equal = bool((weights_K[counted_K] == weights_K.max()).all()) and bool((weights_K >= 0).all())
    return counted_K.to(weights_K.dtype) if equal else weights_K
