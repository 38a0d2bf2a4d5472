"""The data of hostile clients: copies of their own examples, which an attack has changed before any training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from fedvote import contracts
from fedvote.attacks.attack import Attack
from fedvote.core import Examples
from fedvote.randomness import Key


def poisoned_data(
    train: Examples, owned: Sequence[Tensor], attack: Attack, classes: int, hostile: Sequence[Key]
) -> tuple[Examples, Sequence[Tensor]]:
    """All examples that clients train on, and each client's rows of them.

    `hostile`: the keys of the hostile clients. Their changed examples follow after all others, which stay as they are.
    """
    if type(attack).poison_examples is Attack.poison_examples:
        return train, owned
    parts, rows = [train], list(owned)
    for member, key in enumerate(hostile):
        clean = train.rows(owned[key.client])
        if not len(clean):
            continue  # another machine has them
        changed = attack.poison_examples(clean, classes, member, key)
        contracts.examples(attack, changed, clean, classes)
        start = sum(map(len, parts))
        rows[key.client] = torch.arange(start, start + len(changed))
        parts.append(changed)
    x, y = torch.cat([part.x for part in parts]), torch.cat([part.y for part in parts])
    return Examples(x, y, train.mean, train.std), rows
