"""Rotated inputs: honest clients with other data, to measure what a rule costs a minority. Knows its own data alone.

Nobody is hostile. Images are turned by 90 degrees. Other inputs, such as rows of a table, are reversed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from fedvote.attacks.attack import Attack
from fedvote.core import Examples
from fedvote.randomness import Key


@dataclass(frozen=True)
class Rotated(Attack):
    def poison_examples(self, examples: Examples, classes: int, member: int, key: Key) -> Examples:
        x = examples.x
        square = x.ndim > 2 and x.shape[-1] == x.shape[-2]
        return replace(examples, x=torch.rot90(x, 1, (-2, -1)).contiguous() if square else x.flip(-1))
