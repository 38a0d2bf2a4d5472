"""FedVote whose clients' turns are remembered, for runs that have many of them in common.

What a client sends is a function of what it received, its batches and its key. Under a rule that leaves every attacker
out, all attacks leave the honest clients the same rounds, and an attacker that inverts its votes trains as one that
inverts some of them: such turns are taken once. Nothing else is left out, and no result changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import torch

from fedvote.core import Batches, Message, State
from fedvote.methods import FedVote
from fedvote.network.network import Network
from fedvote.randomness import Key

Turns = dict[bytes, Message]
"""What was sent, by a digest of all that it follows from; K is not in front."""


@dataclass(frozen=True)
class Remembered(FedVote):
    turns: Turns = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def like(cls, method: FedVote, turns: Turns) -> Remembered:
        """The same method, on turns that may be shared with others that differ from it in their reputation rule."""
        return cls(**{part.name: getattr(method, part.name) for part in fields(method)}, turns=turns)

    def local(
        self, network: Network, down: Message, batches: Batches, memory: State, keys: Sequence[Key]
    ) -> tuple[Message, State]:
        names = digests(down, batches, keys)
        new = [row for row, name in enumerate(names) if name not in self.turns]
        if new:
            ups, _ = super().local(network, down, rows_of(batches, new), memory, [keys[row] for row in new])
            for k, row in enumerate(new):
                self.turns[names[row]] = {part: rows[k] for part, rows in ups.items()}
        messages = [self.turns[name] for name in names]
        return {part: torch.stack([message[part] for message in messages]) for part in messages[0]}, memory


def digests(down: Message, batches: Batches, keys: Sequence[Key]) -> list[bytes]:
    """For each client, a name of all that its turn follows from."""
    received = hashlib.blake2b()
    for part in sorted(down):
        received.update(part.encode() + down[part].cpu().numpy().tobytes())
    labels_KSB = batches.examples.y[batches.index_KSB] if batches.poisoned_KSB is None else batches.poisoned_KSB
    index_KSB, labels_KSB = batches.index_KSB.cpu(), labels_KSB.cpu()
    names = []
    for row, key in enumerate(keys):
        name = received.copy()
        name.update(repr((key, batches.steps_K and batches.steps_K[row], index_KSB.shape[1:])).encode())
        name.update(index_KSB[row].numpy().tobytes() + labels_KSB[row].numpy().tobytes())
        names.append(name.digest())
    return names


def rows_of(batches: Batches, rows: list[int]) -> Batches:
    """The batches of some clients of a stack."""
    return replace(
        batches,
        index_KSB=batches.index_KSB[rows],
        samples_K=batches.samples_K[rows],
        poisoned_KSB=None if batches.poisoned_KSB is None else batches.poisoned_KSB[rows],
        steps_K=None if batches.steps_K is None else tuple(batches.steps_K[row] for row in rows),
    )
