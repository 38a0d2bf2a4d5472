"""What the server does in a secure tally: it opens a session, adds masked ballots, and unmasks their sum."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from fedvote.errors import LateBallotError, WireError
from fedvote.secure.masks import add_masks, check_of
from fedvote.secure.messages import (
    SignedKey,
    missing,
    read_ballot,
    read_shares,
    write_opening,
    write_voters,
)
from fedvote.secure.planes import add, from_bytes, to_numbers, words_of
from fedvote.secure.session import Session, sign
from fedvote.secure.shamir import recover


class MaskedTally:
    """The sum of masked ballots. A ballot is added as it arrives; its shares are kept until the sum is unmasked."""

    def __init__(self, session: Session, keys: Mapping[int, SignedKey], device: torch.device | str = "cpu"):
        """`keys`: of all clients of the session."""
        self.session, self._keys = session, keys
        self._total_MW = torch.zeros((session.bits, words_of(session.terms.count)), dtype=torch.int32, device=device)
        self._checks: dict[int, list[bytes]] = {}  # voter -> of its seeds
        self._bundles: dict[int, Mapping[int, bytes]] = {}  # voter -> helper -> sealed shares
        self._shares: dict[int, dict[int, list[int]]] = {}  # voter -> helper -> its shares
        self._fixed: frozenset[int] | None = None
        self.helpers: set[int] = set()  # clients that have answered the list of voters
        self.wrong: dict[int, str] = {}  # client -> why it may be to blame; two together can make others look guilty

    @property
    def voters(self) -> frozenset[int]:
        return self._fixed if self._fixed is not None else frozenset(self._bundles)

    def opening(self, client: int) -> bytes:
        """The message that lets a client take part."""
        return write_opening(self.session, client, self._keys)

    def add(self, frame: bytes, client: int) -> None:
        """Add a masked ballot; WireError if it is none, LateBallotError if the list of voters is fixed."""
        ballot = read_ballot(frame, self.session, client)
        if client in self._bundles:
            raise WireError(f"client {client}'s ballot came twice")
        if self._fixed is not None:
            raise LateBallotError("its ballot came after the list of voters was fixed")
        session = self.session
        add(self._total_MW, from_bytes(ballot.planes, session.terms.count, session.bits, self._total_MW.device))
        self._checks[client], self._bundles[client] = list(ballot.checks), ballot.bundles
        self._shares[client] = {}

    def request(self, client: int) -> bytes:
        """The list of voters for a helper. The first call fixes the list: no ballot is added any more."""
        self._fixed = self.voters
        self.session.check_voters(self._fixed)
        sealed = {voter: bundles[client] for voter, bundles in self._bundles.items() if client in bundles}
        return write_voters(self.session, client, self._keys, self._fixed, sealed)

    def take_shares(self, frame: bytes, helper: int) -> None:
        """Take a helper's answer; WireError if it is none."""
        for voter, shares in list(read_shares(frame, self.session, helper, self.voters)):
            self._shares[voter][helper] = shares
        self.helpers.add(helper)

    def lacking(self) -> int:
        """How many more answers the voter with the fewest needs; 0: the sum can be unmasked."""
        fewest = min((len(shares) for shares in self._shares.values()), default=0)
        return max(0, self.session.threshold - fewest)

    def sums(self) -> Tensor:
        """(count,) int32, the sum of all voters' whole numbers; WireError if shares are missing or do not fit."""
        total_MW = self._total_MW.clone()
        add_masks(total_MW, [pair for voter in sorted(self.voters) for pair in self._masks_of(voter)])
        return to_numbers(total_MW, self.session.terms.count)

    def _masks_of(self, voter: int) -> list[tuple[int, int]]:
        """(seed, sign) of all masks that a voter's ballot leaves in the sum, to be added to it."""
        places = {other: place for place, other in enumerate(self.session.neighbours[voter], start=1)}
        answers = {places[helper]: shares for helper, shares in self._shares[voter].items()}
        masks = []
        for index, other in enumerate((None, *missing(self.session, voter, self.voters))):
            shares = {place: values[index] for place, values in answers.items()}
            seed = self._seed(voter, shares, self._checks[voter][0 if other is None else places[other]])
            masks.append((seed, -1 if other is None else -sign(voter, other)))
        return masks

    def _seed(self, voter: int, shares: Mapping[int, int], check: bytes) -> int:
        """A seed of a voter, from its helpers' shares by their places."""
        helpers = self.session.neighbours[voter]
        try:
            seed, wrong = recover(shares, self.session.threshold, lambda seed: check_of(seed) == check)
        except WireError as error:
            if len(shares) >= self.session.threshold:
                self.wrong[voter] = f"client {voter}: the shares of its seeds do not fit"
            elif len(self.helpers.intersection(helpers)) >= self.session.threshold:
                self.wrong[voter] = f"client {voter}: its helpers cannot open its shares"
            raise WireError(f"client {voter}'s masks cannot be removed: {error}") from error
        self.wrong |= {helpers[x - 1]: f"client {helpers[x - 1]}: a share that does not fit" for x in wrong}
        return seed
