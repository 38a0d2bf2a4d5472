"""How FedVote's messages travel: ballots up, the soft vote down.

Entropy-coded, a ballot is coded against the shared random numbers by which its client rounds and against the broadcast
that it started from; a soft vote against the soft vote of the round before, where the receiver has it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from fedvote.codecs import Binary, EntropyVotes, Float32, IfChanged, Integers, Tallies, Ternary
from fedvote.codecs.vote_contexts import contexts
from fedvote.core import Codec, Message
from fedvote.network.network import Network
from fedvote.quantize import BINARY, TERNARY, Alphabet
from fedvote.randomness import Key, shared_random
from fedvote.wire import Codecs, Wire

PLAIN: dict[Alphabet, type[Binary] | type[Ternary]] = {BINARY: Binary, TERNARY: Ternary}


@dataclass(frozen=True)
class BallotWire(Wire):
    network: Network
    alphabet: Alphabet
    entropy: bool  # whether messages are entropy-coded, or sent in whole bits
    floats: tuple[str, ...]  # names of the float tensors that travel beside the votes
    soft: Callable[[Message], Tensor]  # the normalised weights that a broadcast stands for

    @property
    def personal(self) -> bool:
        return self.entropy

    @property
    def keeps_broadcast(self) -> bool:
        return self.entropy

    def up(self, down: Message, key: Key) -> Codecs:
        votes = ballot_codec(self.alphabet, down, key) if self.entropy else PLAIN[self.alphabet](self.network.D)
        return {"votes": votes, **self._floats()}

    def down(self, reference: Message | None = None) -> Codecs:
        level: Codec
        if not self.entropy:
            level = Integers(self.network.D)
        elif reference is None:
            level = Tallies(self.network.D)
        else:
            level = Tallies(self.network.D, reference["level"], int(reference["levels"]) + 1)
        changed = IfChanged(level, reference["level"] if reference else None)
        return {"level": changed, "levels": Integers(1), **self._floats()}

    def unmoved(self, down: Message) -> Message:
        return {"votes": self.soft(down)} | {name: down[name] for name in self.floats}

    def _floats(self) -> dict[str, Codec]:
        return {name: Float32(self.network.F) for name in self.floats}


def ballot_codec(alphabet: Alphabet, down: Message, key: Key) -> EntropyVotes:
    """For the ballot of one client: both sides know its random numbers, and what it started from."""
    levels, level_D = int(down["levels"]) + 1, down["level"]
    numbers_D = shared_random(key, len(level_D), level_D.device)
    return EntropyVotes(alphabet, *contexts(level_D, levels, numbers_D, alphabet))
