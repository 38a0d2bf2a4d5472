"""A hash of the broadcast, as clients decode it. It is part of the session.

A server that sends one client another broadcast than all others could compute the others' votes, and subtract them from
the tally (Pasquini et al., 2022). With the hash in the session, clients that start from different broadcasts have no
mask in common.
"""

from __future__ import annotations

import hashlib

import torch

from fedvote.core import Message


def hash_of(broadcast: Message) -> bytes:
    """SHA-256 of all names, types, shapes and values."""
    total = hashlib.sha256()
    for name, value in sorted(broadcast.items()):
        total.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        total.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return total.digest()
