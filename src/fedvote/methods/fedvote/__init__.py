"""FedVote: clients send votes, the server counts them. Algorithm 1, with Appendix A-C for ternary votes.

The server keeps the soft vote p as whole numbers: level j of L stands for 2 p - 1 = 2 j / (L - 1) - 1. The paper's M
clients are a cohort of K here. K equal binary votes need L = K + 1 levels, K equal ternary votes 2 K + 1: no loss.
Votes of unequal weight, and p^(0), are rounded to a grid. With `levels`, every tally is rounded to so few levels before
it is broadcast: fewer bits, more noise. Either way the server continues from exactly what clients decode.

The server can draw the random numbers by which a client rounds, so it knows the ballot r_m that client m would have
sent without training. With `counts = "changes"` it adds to the soft vote the mean of w_m - r_m, in place of counting
w_m anew. The expectation is the same, except where the sum leaves [-1, 1] and is clipped. The noise of rounding is in
both ballots, and cancels where they agree: it is a control variate. `vote_result.py` has the variance.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from torch import Tensor

from fedvote.codecs import Start
from fedvote.core import Batches, Message, State, Weights
from fedvote.errors import ConfigError, Doubt, WireError
from fedvote.influence import INFLUENCES, Influence, Unbounded
from fedvote.method import Merge, Method, layerwise
from fedvote.methods.fedvote.ballot_wire import BallotWire
from fedvote.methods.fedvote.initial_state import GIVEN, initial_state, start_of
from fedvote.methods.fedvote.soft_levels import Rounding, SoftLevels, Spacing
from fedvote.methods.fedvote.trained_floats import rounded_rows
from fedvote.methods.fedvote.vote_count import empty_count
from fedvote.methods.fedvote.vote_result import MOST_GRID_LEVELS, TALLIES
from fedvote.methods.frozen_weights import without_frozen
from fedvote.methods.rounded_broadcast import MOST_FLOAT_LEVELS
from fedvote.network.network import Network
from fedvote.privacy import PRIVACIES, NoNoise, Privacy
from fedvote.quantize import (
    BINARY,
    NORMALISATIONS,
    TERNARY,
    Alphabet,
    Normalisation,
    Tanh,
    clip,
    round_by_shared_random,
    share_of_votes,
    to_level,
)
from fedvote.randomness import Key
from fedvote.reputation import REPUTATIONS, Reputation, Uniform, rule_of
from fedvote.settings import check_above_zero
from fedvote.training.descent import descend
from fedvote.training.schedules import SCHEDULES, Constant, Schedule
from fedvote.wire import Coding

Votes = Literal["binary", "ternary"]
SignRounding = Literal["likeliest", "random"]
Counts = Literal["votes", "changes"]
ALPHABETS: dict[str, Alphabet] = {"binary": BINARY, "ternary": TERNARY}


@dataclass(frozen=True)
class FedVote(Method):
    keeps_frozen = True

    votes: Votes = "binary"  # -1 and +1; or "ternary": -1, 0 and +1
    normalisation: Normalisation = field(default=Tanh(1.5), metadata={"registry": NORMALISATIONS})  # phi
    reputation: Reputation = field(default=Uniform(), metadata={"registry": REPUTATIONS})  # rule that weighs ballots
    influence: Influence = field(default=Unbounded(), metadata={"registry": INFLUENCES})  # bounds a round's moves
    privacy: Privacy = field(default=NoNoise(), metadata={"registry": PRIVACIES})  # noise that clients add to votes
    counts: Counts = "votes"  # as in the paper; or "changes": how far votes depart from those of an untrained client
    p_min: float = 0.001  # soft votes are clipped to [p_min, 1 - p_min]
    grid: int = 4097  # levels of any soft vote that is not a count of equal votes
    levels: int = 0  # of the soft vote that is broadcast: 2 to 256 (arcsine: 50); 0: all of the tally, as in the paper
    level_rounding: Rounding = "nearest"  # or "carry", with the rest added in the next round; or "random"
    level_spacing: Spacing = "arcsine"  # equally far apart for the noise of votes; or "even": in p
    coding: Coding = "entropy"  # or "plain": whole bits
    sign_share: float = 0.0  # share of the sign in the weights that clients train through; 1: the deployed network's
    sign_schedule: Schedule = field(default=Constant(), metadata={"registry": SCHEDULES})  # factor of `sign_share`
    sign_rounding: SignRounding = "likeliest"  # the vote in that share; or "random": rounded at random in every step
    deploy_rounds: int = 1  # rounds whose votes the deployed network counts together; older ones fade by 1 - 1/R
    train_float: bool = False  # train and average the float weights; false: they stay as they start
    float_lr: float = 0.001  # the learning rate of float weights that train
    float_levels: int = 0  # values above zero of their update, both ways, 2 s + 1 in all; 0: float32

    explains = {  # noqa: RUF012  (a constant)
        "weights_flipped": "Weights flipped: the share of deployed weights that changed in the round.",
        "epsilon": "Epsilon: what the round's tally may give away about one client, except with chance delta.",
        "epsilon_in_all": "Epsilon in all: what all tallies so far may give away about one client.",
        "delta": "Delta: the chance with which more than epsilon is given away.",
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
        if self.deploy_rounds > 1 and self.counts == "changes":
            raise ConfigError(
                f"deploy_rounds is {self.deploy_rounds} and counts 'changes', which adds up all rounds already: "
                "expected deploy_rounds 1, or counts 'votes'"
            )
        if self.is_private and (self.votes != "binary" or self.counts == "changes" or rule_of(self) is not None):
            raise ConfigError(
                f"privacy is {type(self.privacy).__name__}, which is for binary votes that are counted equally: set "
                "votes = binary, counts = votes and reputation = uniform"
            )
        if self.influence.binary_tally_only and (self.votes != "binary" or self.counts == "changes"):
            raise ConfigError(
                f"influence is {type(self.influence).__name__}, which needs a mean of binary votes, but votes is "
                f"{self.votes!r} and counts {self.counts!r}: set votes = binary and counts = votes, or another "
                "influence, such as agreement"
            )
        if not 3 <= self.grid <= MOST_GRID_LEVELS:
            raise ConfigError(f"grid is {self.grid}, expected 3 to {MOST_GRID_LEVELS} levels")
        if self.grid <= self.levels:
            raise ConfigError(f"levels is {self.levels}, expected fewer than the {self.grid} levels of the grid")
        if self.level_rounding != "nearest" and not self.levels:
            raise ConfigError(f"level_rounding is {self.level_rounding!r}, which needs levels: choose 2 or more")
        self.soft_levels.check()
        if not 0 <= self.float_levels <= MOST_FLOAT_LEVELS:
            raise ConfigError(f"float_levels is {self.float_levels}, expected 0 (float32) or 1 to {MOST_FLOAT_LEVELS}")
        check_above_zero(self, "float_lr")

    def check(self, cohort: int) -> None:
        counted = (len(self.alphabet) - 1) * cohort + 1  # levels of so many equal votes
        rounds_all = self.counts == "changes" or self.bounds or self.is_private or rule_of(self) is not None
        if self.levels > counted and not rounds_all:
            many = f"levels is {self.levels}, but {cohort} equal votes have {counted}"
            warnings.warn(f"{many}, so they are not rounded: choose fewer", Doubt, stacklevel=4)

    @property
    def alphabet(self) -> Alphabet:
        return ALPHABETS[self.votes]

    @property
    def soft_levels(self) -> SoftLevels:
        return SoftLevels(self.levels, self.level_rounding, self.level_spacing, self.p_min)

    def init(self, network: Network, clients: int) -> State:
        return initial_state(self, network, clients)

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
        weights_KD = self.privacy.blur(phi(latent_KD), self.soft(down))
        up = {"votes": round_by_shared_random(weights_KD, self.alphabet, keys)}
        if self.train_float:
            start_F, trained_KF = (without_frozen(floats, network.trains) for floats in (down["float"], trained[0]))
            up["float"] = rounded_rows(start_F, trained_KF, self.float_levels)
        return up, memory

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
        return empty_count(self, state, key)

    def measure(self, before: State, after: State) -> dict[str, float]:
        flipped = (before["plurality"] != after["plurality"]).float().mean()

        # |2 p - 1|: 0 for an even split, 1 for a unanimous vote
        decided = self.broadcast_soft(after).abs().mean()
        return {"weights_flipped": float(flipped), "votes_decided": float(decided), **self._privacy_so_far(after)}

    def _privacy_so_far(self, after: State) -> dict[str, float]:
        """The account of all tallies so far, for the record."""
        if not self.is_private:
            return {}
        rounds = {voters: count for voters, count in enumerate(after[TALLIES].tolist()) if count}
        return self.privacy.account(rounds, int(after["vote_weight"].count_nonzero()), len(after["level"]))

    def models(self, state: State) -> dict[str, Weights]:
        votes_D = state["plurality"]
        if bool((votes_D.abs() > 1).any()) or (0 not in self.alphabet and not bool(votes_D.all())):
            raise WireError(f"the plurality has votes other than {', '.join(map(str, self.alphabet))}")
        if "layers" in state and (int(state["layers"].min()) < 1 or int(state["layers"].sum()) != len(votes_D)):
            raise WireError(f"the layers have {state['layers'].tolist()} votes, expected {len(votes_D)} in all")
        return {
            "deployed": Weights(votes_D.float(), state["float"]),
            "float": Weights(self.soft(state), state["float"]),
        }

    def wire(self, network: Network) -> BallotWire:
        return BallotWire(
            network,
            self.alphabet,
            entropy=self.coding == "entropy",
            floats_down=("float",) if self.train_float or network.given else (),
            floats_up=self._floats,
            soft=self.soft,
            levels=self.soft_levels,
            start=None if network.given else Start(partial(self.start_level, network), self.grid),
            float_levels=self.float_levels if self.train_float else 0,
        )

    def start_level(self, network: Network) -> Tensor:
        """(D,) the levels of p^(0). The CPU makes them, so that machines with and without a GPU make the same."""
        drawn_D = network.start.voted
        return to_level(start_of(network, drawn_D.cpu()), self.grid).to(drawn_D.device)

    def soft(self, message: Message) -> Tensor:
        """clip(2 p - 1): the normalised weights that a round starts from."""
        lowest, highest = (int(end) for end in message["level"].aminmax())
        limit = int(message["levels"])
        if not 0 <= lowest <= highest <= limit or limit < 1:
            raise WireError(
                f"the soft vote has levels {lowest} to {highest}, expected 0 to {limit}, with 1 or more as the highest"
            )
        return clip(self.broadcast_soft(message), self.p_min)

    def broadcast_soft(self, message: Message) -> Tensor:
        """2 p - 1, before it is clipped."""
        return self.soft_levels.value(message["level"], int(message["levels"]) + 1)

    def start_of_changes(self, state: State) -> Tensor:
        """The 2 p - 1 that changes are added to. If rests are carried it is clipped: the rest is the part cut off."""
        return self.soft(state) if self.carries else self.broadcast_soft(state)

    @property
    def trains_float(self) -> bool:  # type: ignore[override]
        return self.train_float

    @property
    def is_private(self) -> bool:  # type: ignore[override]
        return not isinstance(self.privacy, NoNoise)

    @property
    def bounds(self) -> bool:
        return not isinstance(self.influence, Unbounded)

    @property
    def carries(self) -> bool:
        return bool(self.levels) and self.level_rounding == "carry"

    @property
    def _floats(self) -> tuple[str, ...]:
        return ("float",) if self.train_float else ()
