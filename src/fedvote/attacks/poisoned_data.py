"""Poisoned data of hostile clients: copies of their examples, changed before any training, and labels of batches."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from fedvote import contracts
from fedvote.attacks.attack import Attack
from fedvote.core import Batches, Examples
from fedvote.randomness import Key


def poisoned_data(
    train: Examples, owned: Sequence[Tensor], attack: Attack, classes: int, hostile: Sequence[Key]
) -> tuple[Examples, Sequence[Tensor]]:
    """All examples that clients train on, and each client's rows of them.

    `hostile`: the keys of the hostile clients. Their changed examples follow after all others, which stay as they are.
    """
    if not attack.poisons_examples:
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


def with_poisoned_labels(batches: Batches, attack: Attack, classes: int, hostile: Mapping[int, Key]) -> Batches:
    """The batches, in which the attack may have changed labels. `hostile`: rows of hostile clients, with their keys."""
    if not hostile or not attack.poisons:
        return batches
    labels_KSB, rows = batches.examples.y[batches.index_KSB], list(hostile)
    clean_HSB = labels_KSB[rows]
    poisoned_HN = attack.poison(clean_HSB.flatten(1), classes, list(hostile.values()))
    poisoned_HN = contracts.labels(attack, poisoned_HN, clean_HSB.flatten(1), classes)
    labels_KSB[rows] = poisoned_HN.view_as(clean_HSB).to(labels_KSB.dtype)
    return dataclasses.replace(batches, poisoned_KSB=labels_KSB)
