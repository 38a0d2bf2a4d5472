"""What a client does in a secure tally: it masks its ballot, and helps to unmask the tally. No engine is known here."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from fedvote.errors import WireError
from fedvote.secure.answered import Answered
from fedvote.secure.masks import add_masks, check_of
from fedvote.secure.messages import (
    MaskedBallot,
    SignedKey,
    missing,
    read_opening,
    read_voters,
    write_ballot,
    write_shares,
)
from fedvote.secure.pairwise import KeyPair, pair_seed, seal, unseal
from fedvote.secure.planes import to_bytes, to_planes
from fedvote.secure.session import Session, Terms, sign
from fedvote.secure.shamir import BYTES, Entropy, random_number, share
from fedvote.secure.signed_keys import Witness


def mask_ballot(
    key: KeyPair,
    client: int,
    opening: bytes,
    terms: Terms,
    trained: tuple[int, bytes],
    numbers_n: Tensor,
    entropy: Entropy,
    witness: Witness,
) -> bytes:
    """The answer to an opening: the masked ballot, and sealed shares of its seeds.

    `trained`: the round, and a hash of the broadcast, that this client has trained from.
    """
    session, keys = read_opening(opening, terms, client)
    if (session.round, session.broadcast) != trained:
        raise WireError(
            f"a session of round {session.round} with another round or broadcast than this client trained on, in round "
            f"{trained[0]}: the server shows clients different broadcasts"
        )
    if numbers_n.shape != (terms.count,):
        raise WireError(f"a ballot of shape {tuple(numbers_n.shape)}, expected {terms.count} whole numbers")
    secrets = _secrets(key, session, client, keys, witness)
    own_seed = random_number(entropy)
    seeds = {other: pair_seed(secrets[other], session.id, client, other) for other in secrets}

    # y_u = x_u + G(b_u) + sum over v of +-G(s_uv), modulo 2^M
    planes_MW = to_planes(numbers_n, session.bits)
    add_masks(planes_MW, [(own_seed, 1), *((seed, sign(client, other)) for other, seed in seeds.items())])

    helpers = list(range(1, session.degree + 1))
    shares = [share(seed, helpers, session.threshold, entropy) for seed in (own_seed, *seeds.values())]
    bundles = {
        helper: seal(secrets[helper], session.id, client, helper, b"".join(map(_written, column)), entropy)
        for helper, column in zip(session.neighbours[client], zip(*shares, strict=True), strict=True)
    }
    checks = [check_of(seed) for seed in (own_seed, *seeds.values())]
    return write_ballot(session, client, MaskedBallot(to_bytes(planes_MW, terms.count), checks, bundles))


def help_unmask(
    key: KeyPair, client: int, request: bytes, terms: Terms, answered: Answered, witness: Witness
) -> tuple[bytes, Answered]:
    """The answer to a list of voters: shares of voters' own seeds, and of their seeds with clients that are missing."""
    session, keys, voters, bundles = read_voters(request, terms, client)
    session.check_voters(voters)
    answered = answered.answering(session, request, voters)
    secrets = _secrets(key, session, client, keys, witness)
    shares: dict[int, list[int]] = {}
    for voter, sealed in bundles.items():
        try:
            text = unseal(secrets[voter], session.id, voter, client, sealed)
        except WireError:
            continue  # the voter's fault: others may have got good shares
        own, *pairs = (int.from_bytes(text[at : at + BYTES], "little") for at in range(0, len(text), BYTES))
        by_neighbour = dict(zip(session.neighbours[voter], pairs, strict=True))
        shares[voter] = [own, *(by_neighbour[other] for other in missing(session, voter, voters))]
    return write_shares(session, client, shares, voters), answered


def _secrets(
    key: KeyPair, session: Session, client: int, keys: Mapping[int, SignedKey], witness: Witness
) -> dict[int, bytes]:
    """Neighbour -> the secret that the two share."""
    if keys[client].public != key.public:
        raise WireError(f"the server has a wrong key of this client, {client}: its masks would not cancel")
    witness.check(session.terms.run, keys)
    return {other: key.secret_with(keys[other].public) for other in session.neighbours[client]}


def _written(value: int) -> bytes:
    return value.to_bytes(BYTES, "little")
