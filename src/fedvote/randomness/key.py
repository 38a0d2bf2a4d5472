"""Every random number of a run is a function of (seed, round, client, purpose), and of nothing else.

The numbers by which a client rounds are the exception: they follow from the client's secret and the round
(shared_random.py). The server derives each client's secret from the secret of the run, by keyed BLAKE2b. So a client
can draw its own numbers and no other client's, although all know the seed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import torch

SERVER = -1
"""The client number of the server's own random numbers."""

SECRET_BYTES = 32  # a key of ChaCha20


def run_secret(seed: int) -> bytes:
    """The secret of a simulated run: runs of one seed repeat. A federated server draws its secret instead."""
    return hashlib.blake2b(f"{seed}/secret of the run".encode(), digest_size=SECRET_BYTES).digest()


@dataclass(frozen=True)
class Key:
    """The source of random numbers: seed, round and client; every use adds its purpose."""

    seed: int
    round: int = 0
    client: int = SERVER
    secret: bytes = field(default=b"", repr=False)  # the run's for the server, else the client's; empty: no secret

    def number(self, purpose: str) -> int:
        """63 bits that differ for every key and purpose."""
        text = f"{self.seed}/{self.round}/{self.client}/{purpose}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1

    def torch(self, purpose: str, device: torch.device | str = "cpu") -> torch.Generator:
        return torch.Generator(device).manual_seed(self.number(purpose))

    def numpy(self, purpose: str) -> np.random.Generator:
        return np.random.Generator(np.random.Philox(self.number(purpose)))

    def of(self, client: int) -> Key:
        """The key of a client in the same round. Only the server has every client's; a client has its own."""
        if client == self.client:
            return self
        if self.client != SERVER:
            raise ValueError(f"this is the key of client {self.client}, which has no secret of client {client}")
        own = hashlib.blake2b(str(client).encode(), key=self.secret, digest_size=SECRET_BYTES).digest()
        return Key(self.seed, self.round, client, own if self.secret else b"")

    @property
    def rounding_key(self) -> bytes:
        """32 bytes: the client's secret. Without a secret (tests, benchmarks) they follow from the seed alone."""
        if self.secret and self.client == SERVER:
            raise ValueError("the server does not round: draw a client's numbers by `key.of(client)`")
        public = f"{self.seed}/{self.client}/no secret".encode()
        return self.secret or hashlib.blake2b(public, digest_size=SECRET_BYTES).digest()
