"""FedVote: clients send votes, the server counts them. Algorithm 1, with Appendix A-C for ternary votes.

The server keeps the soft vote p as whole numbers: level j of L stands for 2 p - 1 = 2 j / (L - 1) - 1. The paper's M
clients are a cohort of K here. K equal binary votes need L = K + 1 levels, K equal ternary votes 2 K + 1: no loss.
Votes of unequal weight, and p^(0), are rounded to a grid. With `levels`, every tally is rounded to so few levels before
it is broadcast: fewer bits, more noise. Either way the server continues from exactly what clients decode.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from fedvote.aggregate.mean import weighted_sum
from fedvote.aggregate.median import median
from fedvote.core import Batches, Message, State, Weights
from fedvote.errors import ConfigError, WireError
from fedvote.influence import INFLUENCES, Influence, Unbounded
from fedvote.method import AllAtOnce, Merge, Method, layerwise
from fedvote.methods.ballot_wire import BallotWire
from fedvote.methods.soft_levels import Rounding, SoftLevels, Spacing
from fedvote.network.network import Network
from fedvote.packed import Counter, Packed, pack
from fedvote.packed.shelf import Shelf
from fedvote.quantize import (
    BINARY,
    NORMALISATIONS,
    TERNARY,
    THRESHOLD,
    Alphabet,
    Normalisation,
    Tanh,
    clip,
    plurality,
    round_by_shared_random,
    share_of_votes,
    soft_vote,
    tally,
    to_level,
)
from fedvote.randomness import Key
from fedvote.reputation import REPUTATIONS, Ballots, Reputation, Uniform, rule_of
from fedvote.reputation.reputation import check_verdict
from fedvote.training.descent import descend
from fedvote.training.schedules import SCHEDULES, Constant, Schedule
from fedvote.wire import Coding

Votes = Literal["binary", "ternary"]
SignRounding = Literal["likeliest", "random"]
ALPHABETS: dict[str, Alphabet] = {"binary": BINARY, "ternary": TERNARY}
MOST_LEVELS = 2**15  # of a soft vote: the highest level fits int16
GIVEN = "float_given"  # in the state if the seed does not make all float weights: clients are sent them
MEMORY = "reputation/"  # prefix of the state tensors that belong to the reputation rule


@dataclass(frozen=True)
class FedVote(Method):
    votes: Votes = "binary"  # -1 and +1; or "ternary": -1, 0 and +1
    normalisation: Normalisation = field(default=Tanh(1.5), metadata={"registry": NORMALISATIONS})  # phi
    reputation: Reputation = field(default=Uniform(), metadata={"registry": REPUTATIONS})  # lambda: ballots' weights
    influence: Influence = field(default=Unbounded(), metadata={"registry": INFLUENCES})  # bounds a round's moves
    p_min: float = 0.001  # soft votes are clipped to [p_min, 1 - p_min]
    grid: int = 4097  # levels of any soft vote that is not a count of equal votes
    levels: int = 0  # of the soft vote that is broadcast: 2 to 256; 0: all that the tally has, as in the paper
    level_rounding: Rounding = "nearest"  # or "carry", with the rest added in the next round; or "random"
    level_spacing: Spacing = "arcsine"  # equally far apart for the noise of votes; or "even": in p
    coding: Coding = "entropy"  # or "plain": whole bits
    sign_share: float = 0.0  # share of the sign in the weights that clients train through; 1: the deployed network's
    sign_schedule: Schedule = field(default=Constant(), metadata={"registry": SCHEDULES})  # factor of `sign_share`
    sign_rounding: SignRounding = "likeliest"  # the vote in that share; or "random": rounded at random in every step
    deploy_rounds: int = 1  # rounds whose votes the deployed network counts together; older ones fade by 1 - 1/R
    train_float: bool = False  # train and average the float weights; false: they stay as they start
    float_lr: float = 0.003  # the learning rate of float weights that train

    explains = {  # noqa: RUF012  (a constant)
        "weights_flipped": "Weights flipped: the share of deployed weights that changed in the round.",
        "votes_decided": "Votes decided: the mean of |2p - 1|; 0 if votes are split evenly, 1 if all agree.",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.p_min < 0.5:
            raise ConfigError(f"p_min is {self.p_min}, expected a number between 0 and 0.5; the paper has 0.001")
        if not 0 <= self.sign_share <= 1:
            raise ConfigError(f"sign_share is {self.sign_share}, expected a share from 0 to 1")
        if self.deploy_rounds < 1:
            raise ConfigError(f"deploy_rounds is {self.deploy_rounds}, expected 1 (the last round alone) or more")
        if not 3 <= self.grid <= MOST_LEVELS:
            raise ConfigError(f"grid is {self.grid}, expected 3 to {MOST_LEVELS} levels")
        if self.grid <= self.levels:
            raise ConfigError(f"levels is {self.levels}, expected fewer than the {self.grid} levels of the grid")
        self.soft_levels  # noqa: B018 - checks them
        if not 0 < self.float_lr < math.inf:
            raise ConfigError(f"float_lr is {self.float_lr}, expected a finite number above 0")

    @property
    def alphabet(self) -> Alphabet:
        return ALPHABETS[self.votes]

    @property
    def soft_levels(self) -> SoftLevels:
        return SoftLevels(self.levels, self.level_rounding, self.level_spacing, self.p_min)

    def init(self, network: Network, clients: int) -> State:
        # 2 p^(0) - 1: the initial weights, each layer divided by its standard deviation; given ones as well: dividing
        # by more loses more of a trained network, dividing by less slows an untrained one down
        soft_D = network.standardise(network.start.voted).clamp(-0.999, 0.999)
        state = {
            "level": to_level(soft_D, self.grid),
            "levels": torch.tensor([self.grid - 1], dtype=torch.int16, device=soft_D.device),
            "plurality": THRESHOLD[self.alphabet](soft_D),
            "float": network.start.floats,
            "vote_weight": torch.zeros(clients, device=soft_D.device),
        }
        if self.reputation.by_layer:
            state["layers"] = torch.tensor([slot.size for slot in network.voted], device=soft_D.device)
        if self.deploy_rounds > 1:
            state["recent"] = soft_D.new_zeros(len(self.alphabet), len(soft_D))
        if self._carries:
            state["carried"] = torch.zeros_like(soft_D)
        if network.given:
            state[GIVEN] = torch.ones(1, dtype=torch.uint8, device=soft_D.device)
        memory = self.reputation.init(clients)
        return state | {MEMORY + name: value.to(soft_D.device) for name, value in memory.items()}

    def broadcast(self, state: State) -> Message:
        floats = ("float",) if self.train_float or GIVEN in state else ()
        return {name: state[name] for name in ("level", "levels", *floats)}

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        phi, K = self.normalisation, batches.clients
        if not self.train_float and "float" in down:
            network = network.with_floats(down["float"])

        # h_m^(k,0) = phi^-1(2 p^(k) - 1)
        latent_D = phi.inverse(self.soft(down))

        start = [rows.expand(K, -1) for rows in (latent_D, *(down[name] for name in self._floats))]
        if self.sign_share:
            share = self.sign_share * self.sign_schedule.at(keys[0].round, batches.rounds)
            # beside the weights, so that a GPU's recording serves every share; nothing trains it
            start.append(latent_D.new_full((K, 1), min(max(share, 0.0), 1.0)))
        rates = (self.lr, *(self.float_lr for _ in self._floats))

        # h_m^(k,t+1) = h_m^(k,t) - eta grad_h f_m(phi(h_m^(k,t)); xi_m^(k,t)),  t = 0 .. tau - 1
        latent_KD, *trained = descend(self, network, start, batches, rates)[: 1 + len(self._floats)]

        # w~_m^(k,tau) = phi(h_m^(k,tau)),  w_m^(k,tau) = sto_rounding(w~_m^(k,tau))
        up = {"votes": round_by_shared_random(phi(latent_KD), self.alphabet, keys)}
        return up | dict(zip(self._floats, trained, strict=True)), memory

    @layerwise
    def objective(self, network: Network, *weights: Any) -> Tensor:
        # f_m(phi(h); xi), with a batch xi = (x, y)
        h_D, *rest, x_B, y_B = weights
        share = rest[-1][0].detach() if self.sign_share else None

        def forward(h: Tensor) -> Tensor:
            w = self.normalisation(h)
            return w if share is None else share_of_votes(w, share, self.alphabet, self.sign_rounding == "random")

        voted = forward(h_D) if isinstance(h_D, Tensor) else tuple(map(forward, h_D))
        return network.loss(voted, rest[0] if self.train_float else network.start.floats, x_B, y_B)

    def merge(self, state: State, key: Key) -> Merge:
        if rule_of(self) is None and not self.train_float:
            return Count(self, state, key)
        return Judged(self, state, key) if state["level"].device.type == "cpu" else self._at_once(state, key)

    def measure(self, before: State, after: State) -> dict[str, float]:
        flipped = (before["plurality"] != after["plurality"]).float().mean()

        # |2 p - 1|: 0 for an even split, 1 for a unanimous vote
        decided = self.soft_levels.value(after["level"], int(after["levels"]) + 1).abs().mean()
        return {"weights_flipped": float(flipped), "votes_decided": float(decided)}

    def models(self, state: State) -> dict[str, Weights]:
        votes_D = state["plurality"]
        if bool((votes_D.abs() > 1).any()) or (0 not in self.alphabet and not bool(votes_D.all())):
            raise WireError(f"the plurality has votes other than {', '.join(map(str, self.alphabet))}")
        return {
            "deployed": Weights(state["plurality"].float(), state["float"]),
            "float": Weights(self.soft(state), state["float"]),
        }

    def wire(self, network: Network) -> BallotWire:
        down = ("float",) if self.train_float or network.given else ()
        return BallotWire(
            network, self.alphabet, self.coding == "entropy", down, self._floats, self.soft, self.soft_levels
        )

    def soft(self, message: Message) -> Tensor:
        """clip(2 p - 1): the normalised weights that a round starts from."""
        highest, limit = int(message["level"].max()), int(message["levels"])
        if not highest <= limit or limit < 1:
            raise WireError(f"the soft vote has level {highest}, expected at most {limit}, and that to be 1 or more")
        return clip(self.soft_levels.value(message["level"], limit + 1), self.p_min)

    def next_state(
        self, state: State, key: Key, soft_VD: Tensor, hard_VD: Tensor, lambda_K: Tensor, clients: Sequence[int]
    ) -> State:
        """The function vote of Algorithm 1, from the tallies of the soft vote and of the plurality (hard)."""
        mean_D, carried = soft_vote(soft_VD, self.alphabet), {}
        if bounded := not isinstance(self.influence, Unbounded):
            ballots = float(lambda_K.sum().square() / lambda_K.square().sum())
            mean_D = self.influence(self.soft(state), mean_D, ballots)
        if self._carries:
            # s^(k+1) = p^(k+1) + r^(k), with r^(k) the rest that the last broadcast's rounding left out
            mean_D = clip(mean_D + state["carried"], self.p_min)
        level_D, levels = self._rounded(mean_D, self.grid if bounded else self._levels(lambda_K), key)
        if self._carries:
            # r^(k+1) = s^(k+1) - the level that is broadcast
            carried = {"carried": mean_D - clip(self.soft_levels.value(level_D, levels), self.p_min)}
        clients_K = torch.tensor(clients, device=soft_VD.device)
        recent = {}
        if self.deploy_rounds > 1:
            # t^(k+1) = (1 - 1/R) t^(k) + the shares of this round's votes
            hard_VD = (1 - 1 / self.deploy_rounds) * state["recent"] + hard_VD / hard_VD.sum(0)
            recent = {"recent": hard_VD}
        weights_N = torch.zeros_like(state["vote_weight"]).index_copy(0, clients_K, lambda_K / lambda_K.sum())
        after = {
            # p_i^(k+1) = sum_m lambda_m^(k) 1(w_{m,i}^(k,tau) = 1), kept as 2 p - 1
            "level": level_D,
            "levels": torch.full_like(state["levels"], levels - 1),
            # w_i^(k+1) = sign(sum_m w_{m,i}^(k,tau)), ties broken at random
            "plurality": THRESHOLD[self.alphabet](mean_D)  # a bound holds for the deployed network, too
            if bounded
            else plurality(hard_VD, self.alphabet, key.torch("tie", hard_VD.device)),
            "vote_weight": weights_N,
        }
        return state | recent | carried | after

    def _at_once(self, state: State, key: Key) -> AllAtOnce:
        return AllAtOnce(lambda ups, clients: self.weighted(state, key, ups["votes"], ups.get("float"), clients))

    def weighted(
        self, state: State, key: Key, votes_KD: Tensor | Packed, float_KF: Tensor | None, clients: list[int]
    ) -> State:
        """The next state, with lambda from the reputation rule: Option II."""
        memory = {name.removeprefix(MEMORY): state[name] for name in state if name.startswith(MEMORY)}
        clients_K = torch.tensor(clients, device=state["level"].device)
        layers = tuple(state["layers"].tolist()) if self.reputation.by_layer else ()
        ballots = Ballots(votes_KD, clients_K, self.soft(state), self.alphabet, layers)
        verdict = self.reputation.judge(memory, ballots, key)
        check_verdict(self.reputation, verdict, len(clients), memory)
        new_memory = {MEMORY + name: value for name, value in verdict.memory.items()}
        if not float(verdict.soft_K.sum()):  # nobody counts: the soft vote stays
            return state | {"vote_weight": torch.zeros_like(state["vote_weight"])} | new_memory

        lambda_K = _ones_if_equal(verdict.soft_K)
        soft_VD = tally(votes_KD, lambda_K, self.alphabet)
        same = torch.equal(verdict.hard_K, verdict.soft_K)
        hard_VD = soft_VD if same else tally(votes_KD, verdict.hard_K, self.alphabet)
        floats = {} if float_KF is None else {"float": self._merged_floats(float_KF, lambda_K)}
        return self.next_state(state, key, soft_VD, hard_VD, lambda_K, clients) | floats | new_memory

    def _merged_floats(self, floats_KF: Tensor, lambda_K: Tensor) -> Tensor:
        """The mean; under a reputation rule the median of the clients that count: no rule judges float weights."""
        if rule_of(self) is None:
            return weighted_sum(lambda_K / lambda_K.sum(), floats_KF)
        return median(floats_KF[lambda_K > 0])

    @property
    def _carries(self) -> bool:
        return bool(self.levels) and self.level_rounding == "carry"

    @property
    def _floats(self) -> tuple[str, ...]:
        return ("float",) if self.train_float else ()

    def _rounded(self, soft_D: Tensor, every: int, key: Key) -> tuple[Tensor, int]:
        """The soft vote as levels, and the number of levels: `every` one that it has, or the few that are asked for."""
        if not self.levels or every < self.levels:
            return to_level(soft_D, every), every
        return self.soft_levels.round(soft_D, key), self.levels

    def _levels(self, lambda_K: Tensor) -> int:
        """L: the number of values that a count of equal votes can take; otherwise the grid."""
        exact = (len(self.alphabet) - 1) * int(lambda_K.count_nonzero()) + 1
        return exact if bool(((lambda_K == 0) | (lambda_K == 1)).all()) and exact <= MOST_LEVELS else self.grid


class Count(Merge):
    """Option I, lambda_m = 1/M: ballots are added to the tally as they arrive, and not kept."""

    def __init__(self, method: FedVote, state: State, key: Key):
        self._method, self._state, self._key = method, state, key
        N, D, device = len(state["vote_weight"]), len(state["level"]), state["level"].device
        self._counter = Counter(D, method.alphabet, N) if device.type == "cpu" else None
        self._tally_VD = torch.zeros((len(method.alphabet), 1), device=device)
        self._clients: list[int] = []

    def add(self, ups: Message, clients: Sequence[int]) -> None:
        # sums of whole numbers are exact in float32, so their order does not matter
        votes_KD, alphabet = ups["votes"], self._method.alphabet
        if self._counter is not None:
            self._counter.add(pack(votes_KD, alphabet))
        else:
            ones_K = torch.ones(len(clients), device=votes_KD.device)
            self._tally_VD = self._tally_VD + tally(votes_KD, ones_K, alphabet)
        self._clients = [*self._clients, *clients]

    def close(self) -> State:
        clients, tally_VD = sorted(self._clients), self._tally_VD
        if self._counter is not None:
            others_VD = self._counter.counts().float()
            tally_VD = torch.cat([len(clients) - others_VD.sum(0, keepdim=True), others_VD])
        equal_K = torch.ones(len(clients), device=tally_VD.device)
        return self._method.next_state(self._state, self._key, tally_VD, tally_VD, equal_K, clients)


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
        return self._method.weighted(self._state, self._key, votes, float_KF, clients)


def _ones_if_equal(weights_K: Tensor) -> Tensor:
    """0 and 1 if all positive weights are equal, so that tallies are whole numbers; otherwise the weights."""
    counted_K = weights_K > 0
    equal = bool((weights_K[counted_K] == weights_K.max()).all()) and bool((weights_K >= 0).all())
    return counted_K.to(weights_K.dtype) if equal else weights_K
