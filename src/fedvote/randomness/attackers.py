"""The hostile clients of a simulation, drawn by the seed."""

from __future__ import annotations

from collections.abc import Container

from fedvote.errors import ConfigError
from fedvote.randomness.key import Key


def draw_attackers(key: Key, clients: int, hostile: int, trusted: Container[int] = ()) -> tuple[int, ...]:
    """Numbers of so many clients, in order; nobody draws a client that is known to be honest."""
    others = [client for client in range(clients) if client not in trusted]
    if hostile > (most := len(others)):
        raise ConfigError(
            f"hostile is {hostile}, expected 0 to {most}: {clients - most} of {clients} clients are trusted"
        )
    return tuple(sorted(key.numpy("hostile").choice(others, hostile, replace=False).tolist()))
