"""FedVote on the wire: ballots up, the soft vote down.

The entropy coder predicts a ballot from the broadcast and from its client's shared random numbers. It predicts a soft
vote from the previous round's, if the receiver has that one, and a soft vote of few levels also from the shared random
numbers that rounded it. For a receiver without the previous round's, it predicts a soft vote from the start of the run,
p^(0), which the receiver makes from the seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from fedvote.codecs import (
    Binary,
    EntropyVotes,
    Float32,
    FloatChanges,
    FloatSteps,
    IfChanged,
    Integers,
    Levels,
    Start,
    Tallies,
    Ternary,
)
from fedvote.codecs.vote_contexts import Expected, contexts
from fedvote.core import Codec, Message
from fedvote.methods.fedvote.soft_levels import SoftLevels
from fedvote.methods.frozen_weights import without_frozen
from fedvote.network.network import Network
from fedvote.quantize import BINARY, TERNARY, Alphabet
from fedvote.randomness import Key, shared_random
from fedvote.wire import Codecs, Wire

PLAIN: dict[Alphabet, type[Binary] | type[Ternary]] = {BINARY: Binary, TERNARY: Ternary}


@dataclass(frozen=True)
class BallotWire(Wire):
    network: Network
    alphabet: Alphabet
    entropy: bool  # whether messages are entropy-coded; otherwise whole bits
    floats_down: tuple[str, ...]  # names of the float tensors that are broadcast beside the soft vote
    floats_up: tuple[str, ...]  # and of those that clients send beside their votes
    soft: Callable[[Message], Tensor]  # broadcast -> its normalised weights
    levels: SoftLevels
    start: Start | None  # the levels of p^(0), if the seed makes them
    float_levels: int = 0  # of floats that travel both ways; 0: float32

    @property
    def personal(self) -> bool:
        return self.entropy

    @property
    def keeps_broadcast(self) -> bool:
        # frozen floats are sent to each client once; trained ones as changes
        frozen = self.floats_down != self.floats_up or bool(self.network.frozen)
        return self.entropy or frozen or self.float_levels > 0

    @property
    def summed(self) -> Codecs:
        return {} if self.floats_up else {"votes": PLAIN[self.alphabet](self.network.D)}

    def up(self, down: Message, key: Key) -> Codecs:
        votes: Codec = PLAIN[self.alphabet](self.network.D)
        if self.entropy:
            uneven = self.levels.arcsine(int(down["levels"]) + 1)
            votes = ballot_codec(self.alphabet, down, key, self.levels.values().double().numpy() if uneven else None)
        return {"votes": votes, **{name: self._floats_up(down[name]) for name in self.floats_up}}

    def down(self, reference: Message | None = None, key: Key | None = None) -> Codecs:
        level: Codec
        if not self.entropy:
            level = Integers(self.network.D)
        elif self.levels.number:
            level = self._few_levels(reference, key)
        elif reference is None:
            level = Tallies(self.network.D, start=self.start)
        else:
            level = Tallies(self.network.D, reference["level"], int(reference["levels"]) + 1, self.start)
        changed = IfChanged(level, reference["level"] if reference else None)
        floats = {name: self._floats_down(reference[name] if reference else None) for name in self.floats_down}
        return {"level": changed, "levels": Integers(1), **floats}

    def without_start(self) -> BallotWire:
        return replace(self, start=None)

    def unmoved(self, down: Message) -> Message:
        floats = {name: without_frozen(down[name], self.network.trains) for name in self.floats_up}
        return {"votes": self.soft(down)} | floats

    def _floats_down(self, reference: Tensor | None) -> Codec:
        whole = self.floats_down == self.floats_up and not self.float_levels
        return self._floats(reference) if whole else IfChanged(self._floats(reference), reference)

    def _floats(self, reference: Tensor | None) -> Codec:
        F, few = self.network.F, self.float_levels
        if few:
            return FloatSteps(F, few, reference)
        return FloatChanges(F, reference) if self.network.frozen else Float32(F)

    def _floats_up(self, down_F: Tensor) -> Codec:
        count, few = self.network.trainable - self.network.D, self.float_levels
        trained = without_frozen(down_F, self.network.trains)
        return FloatSteps(count, few, trained, shared=True) if few else Float32(count)

    def _few_levels(self, reference: Message | None, key: Key | None) -> Codec:
        D = self.network.D
        if reference is None:
            return Levels(D, start=self.start)
        last_D, count = reference["level"], int(reference["levels"]) + 1
        counted = Key(key.seed, key.round - 1) if key else None  # the round of the ballots
        numbers_D = self.levels.numbers(counted, D, last_D.device) if counted else None
        return Levels(D, last_D, count, numbers_D, self.start)


def ballot_codec(alphabet: Alphabet, down: Message, key: Key, values_L: Expected | None = None) -> EntropyVotes:
    """The codec of one client's ballot, from what both sides know: the broadcast and the client's random numbers."""
    levels, level_D = int(down["levels"]) + 1, down["level"]
    numbers_D = shared_random(key, len(level_D), level_D.device)
    return EntropyVotes(alphabet, *contexts(level_D, levels, numbers_D, alphabet, values_L))
