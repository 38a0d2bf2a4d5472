"""The header of a network file. Every field is checked, since files may come from anywhere."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from fedvote.codecs import Binary, Float32, Ternary

CODECS: dict[str, type[Binary] | type[Ternary] | type[Float32]] = {
    "binary": Binary,
    "ternary": Ternary,
    "float32": Float32,
}
DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64")
}
LARGEST = 2.0**100  # it and its reciprocal fit into float32


@dataclass(frozen=True)
class About:
    packing: str  # codec of the votes
    shape: Sequence[int]  # of one input
    dtype: str  # of inputs
    classes: Sequence[str]
    mean: Sequence[float]  # of each channel in training
    std: Sequence[float]
    layers: str  # fingerprint of the network
    model: str | None  # name of the network; None: it has none
    keep_float: Sequence[str] | None
    voted: Sequence[str] | None = None  # names of the voted weights; None: as keep_float has it
    seed: int = 0  # of the random numbers that the function which makes the network draws

    @property
    def text(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def read(cls, text: str) -> About:
        """Parse the header. A wrong one raises a KeyError, TypeError or ValueError."""
        table = json.loads(text)
        table = {"voted": None, "seed": 0} | table  # earlier files have no such fields
        about = cls(**{field.name: table[field.name] for field in dataclasses.fields(cls)})
        for name, (is_valid, expected) in EXPECTED.items():
            if not is_valid(value := getattr(about, name)):
                raise ValueError(f"its {name} is {value!r}, expected {expected}")
        if len(about.mean) != len(about.std) or len(about.mean) not in (0, 1, about.shape[0]):
            raise ValueError(
                f"it has {len(about.mean)} means and {len(about.std)} deviations, expected none, or one for each of "
                f"{about.shape[0]} channels"
            )
        return about


def _list_of(*kinds: type, where: Callable[[Any], bool] = lambda _: True) -> Callable[[Any], bool]:
    return lambda values: (
        isinstance(values, list | tuple) and all(type(value) in kinds and where(value) for value in values)
    )


def _string(value: Any) -> bool:
    return isinstance(value, str)


EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "packing": (lambda value: _string(value) and value in CODECS, f"one of {', '.join(CODECS)}"),
    "shape": (lambda value: value and _list_of(int, where=lambda side: side > 0)(value), "whole numbers above 0"),
    "dtype": (lambda value: _string(value) and value in DTYPES, f"one of {', '.join(DTYPES)}"),
    "classes": (lambda value: value and _list_of(str)(value), "a list of names"),
    "mean": (_list_of(int, float, where=lambda mean: abs(mean) < LARGEST), "a list of numbers"),
    "std": (_list_of(int, float, where=lambda std: 1 / LARGEST < std < LARGEST), "a list of numbers above 0"),
    "layers": (_string, "a fingerprint"),
    "model": (lambda value: value is None or _string(value), "a name"),
    "keep_float": (lambda value: value is None or _list_of(str)(value), "a list of names"),
    "voted": (lambda value: value is None or _list_of(str)(value), "a list of names"),
    "seed": (lambda value: type(value) is int, "a whole number"),
}
"""For each field, the check of a value and its description."""
