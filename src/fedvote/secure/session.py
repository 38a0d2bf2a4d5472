"""A session: one attempt at the tally of one round. Its hash is in every seed and key: sessions share nothing."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property

from fedvote.errors import WireError
from fedvote.secure.neighbours import SHARE_IN_GRAPH, default_degree, graph, is_connected, threshold_of
from fedvote.secure.planes import bits_for, nbytes

NONCE_BYTES = 16
HASH_BYTES = 32
MOST_BITS = 31  # of a sum: it is an int32
TERMS = struct.Struct("<IQIIdI")
LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Terms:
    """What server and clients agree on before a run."""

    run: str  # its name, which no other run has
    count: int  # of whole numbers in a ballot
    largest: int = 1  # of these numbers
    neighbours: int = 0  # of each client; 0: all, or as many as a large cohort needs
    threshold: float = 0.0  # share of a client's helpers that can unmask it; 0: 2/3 of all, 2/5 in a graph
    minimum: int = 3  # ballots in a tally
    configuration: bytes = b""  # a hash of it


@dataclass(frozen=True)
class Session:
    terms: Terms
    round: int
    nonce: bytes
    cohort: tuple[int, ...]  # clients of the round that have keys, in ascending order
    broadcast: bytes = bytes(HASH_BYTES)  # a hash of what all clients start from: see broadcast_hash.py

    def __post_init__(self) -> None:
        if len(self.nonce) != NONCE_BYTES or list(self.cohort) != sorted(set(self.cohort)):
            raise WireError("a session needs a nonce of 16 bytes, and its clients in ascending order")
        if self.bits > MOST_BITS:
            raise WireError(f"sums of {self.bits} bits, expected at most {MOST_BITS}: draw a smaller cohort")
        if len(self.cohort) < self.terms.minimum:
            raise WireError(
                f"a session of {len(self.cohort)} clients, expected secure.minimum = {self.terms.minimum} or more"
            )

    @cached_property
    def id(self) -> bytes:
        """S: a hash of everything that the session depends on. Clients with different views have no mask in common."""
        terms = self.terms
        numbers = TERMS.pack(self.round, terms.count, self.bits, self.degree, terms.threshold, terms.minimum)
        cohort = struct.pack(f"<{len(self.cohort)}I", *self.cohort)
        parts = (terms.run.encode(), terms.configuration, numbers, self.nonce, self.broadcast, cohort)
        return hashlib.sha256(b"".join(LENGTH.pack(len(part)) + part for part in parts)).digest()

    @property
    def bits(self) -> int:
        """M: sums are modulo 2^M, the smallest power of two above the largest sum."""
        return bits_for(len(self.cohort) * self.terms.largest)

    @property
    def degree(self) -> int:
        """h: neighbours, and so helpers, of each client."""
        others = len(self.cohort) - 1
        wanted = self.terms.neighbours or default_degree(len(self.cohort))
        return others if wanted >= others else wanted - wanted % 2

    @property
    def all_pairs(self) -> bool:
        return self.degree == len(self.cohort) - 1

    @property
    def threshold(self) -> int:
        """t: shares that give a seed. By default a third of the cohort may vanish, or in a graph 3/5 of the helpers."""
        if self.terms.threshold or not self.all_pairs:
            return threshold_of(self.degree, self.terms.threshold or SHARE_IN_GRAPH)
        return max(self.degree - len(self.cohort) // 3, threshold_of(self.degree, 0))

    @property
    def fewest(self) -> int:
        """Voters of a tally. With less than two thirds, lists that differ by helper could unmask a ballot."""
        is_low = 0 < self.terms.threshold <= 0.5  # no list would be safe then
        return max(self.terms.minimum, 0 if is_low else len(self.cohort) - len(self.cohort) // 3)

    @cached_property
    def neighbours(self) -> Mapping[int, list[int]]:
        return graph(self.cohort, self.degree, hashlib.sha256(b"graph" + self.id).digest())

    def check_voters(self, voters: Collection[int]) -> None:
        """WireError if a tally of these voters would tell too much about each."""
        if len(voters) < self.terms.minimum:
            raise WireError(f"a tally of {len(voters)} ballots, expected secure.minimum = {self.terms.minimum} or more")
        if len(voters) < self.fewest:
            raise WireError(
                f"a tally of {len(voters)} ballots, expected {self.fewest} or more: two thirds of the cohort"
            )
        if not self.all_pairs and not is_connected(self.neighbours, voters):
            raise WireError(f"masks do not connect all {len(voters)} voters: their tally would split into several")

    @property
    def planes_bytes(self) -> int:
        """Of a masked ballot, without shares."""
        return nbytes(self.terms.count, self.bits)


def sign(client: int, other: int) -> int:
    """Of the pair's mask in this client's ballot: the two cancel."""
    return 1 if client > other else -1
