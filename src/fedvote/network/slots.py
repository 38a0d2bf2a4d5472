"""Flat vectors of weights: the place of each parameter, and the way there and back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

Vector = Tensor | Sequence[Tensor]
"""Voted or float weights: one flat vector, or its parts in the order of their slots."""


@dataclass(frozen=True)
class Slot:
    """The place of one parameter in its flat vector."""

    name: str
    shape: tuple[int, ...]
    start: int

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def stop(self) -> int:
        return self.start + self.size


def slots_of(parameters: Mapping[str, Tensor]) -> tuple[Slot, ...]:
    """The places of these parameters, one after the other."""
    slots: list[Slot] = []
    for name, parameter in parameters.items():
        slots.append(Slot(name, tuple(parameter.shape), slots[-1].stop if slots else 0))
    return tuple(slots)


def length(slots: Sequence[Slot]) -> int:
    """The length of the flat vector."""
    return slots[-1].stop if slots else 0


def flatten(parameters: Mapping[str, Tensor], slots: Sequence[Slot]) -> Tensor:
    """The flat vector of the parameters that have a slot."""
    return torch.cat([torch.empty(0), *(parameters[slot.name].detach().flatten() for slot in slots)])


def unflatten(vector: Vector, slots: Sequence[Slot]) -> dict[str, Tensor]:
    """The parameters in a flat vector, by name; they share its memory."""
    # split instead of slices: the gradient of each slice would be as large as the whole vector
    parts = vector.split([slot.size for slot in slots]) if isinstance(vector, Tensor) else vector
    return {slot.name: part.view(slot.shape) for slot, part in zip(slots, parts, strict=False)}


def standardised(vector: Tensor, slots: Sequence[Slot]) -> Tensor:
    """The vector, with each parameter divided by its standard deviation."""
    parts = [vector[slot.start : slot.stop] for slot in slots]
    return torch.cat([part / part.std(correction=0).clamp_min(1e-12) for part in parts])


def fingerprint_of(slots: Sequence[Slot], fixed: Mapping[str, Tensor] | None = None) -> bytes:
    """Eight bytes: a hash of all names and shapes, and of the values of fixed tensors."""
    found = hashlib.blake2b(repr([(slot.name, slot.shape) for slot in slots]).encode(), digest_size=8)
    for name, tensor in (fixed or {}).items():
        found.update(name.encode() + tensor.cpu().numpy().tobytes())
    return found.digest()
