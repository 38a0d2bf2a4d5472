"""Messages as vectors of whole numbers, and sums of such vectors as a merge takes them."""

from __future__ import annotations

import torch
from torch import Tensor

from fedvote.core import Message
from fedvote.errors import WireError
from fedvote.wire import Codecs


def count_of(codecs: Codecs) -> int:
    """Whole numbers in a message."""
    return sum(codec.numbers_per_value * codec.count for codec in codecs.values())


def largest_of(codecs: Codecs) -> int:
    """Of the whole numbers in a message."""
    return max(codec.largest for codec in codecs.values())


def to_vector(message: Message, codecs: Codecs) -> Tensor:
    """One client's message as whole numbers; WireError for a message that the codecs would not carry."""
    return torch.cat(
        [codec.to_whole_numbers(message[name]).flatten().to(torch.int32) for name, codec in codecs.items()]
    )


def to_sums(numbers_n: Tensor, codecs: Codecs, clients: int) -> Message:
    """Sums over clients by name, each (S, count); WireError for sums that so many messages cannot have."""
    parts = numbers_n.split([codec.numbers_per_value * codec.count for codec in codecs.values()])
    sums = {
        name: part.view(codec.numbers_per_value, codec.count)
        for (name, codec), part in zip(codecs.items(), parts, strict=True)
    }
    for name, codec in codecs.items():
        most = int(sums[name].sum(0).max()) if codec.count else 0
        if most > clients * codec.largest:
            raise WireError(
                f"a tally of {most} in {name}, expected at most {clients * codec.largest} of {clients} clients: "
                "somebody sent other numbers than votes, and nobody can see who"
            )
    return sums
