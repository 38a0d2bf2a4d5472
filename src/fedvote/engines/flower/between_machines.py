"""Settings that run in one process, and cannot run between machines: refused before anything is started."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

from fedvote.errors import ConfigError, Doubt
from fedvote.federation import Federation
from fedvote.fitting_parts import check_secrecy
from fedvote.method import Method
from fedvote.plan import FlowerOptions
from fedvote.reputation import trusted_by
from fedvote.rounds import BallotBox, Round


def check_between_machines(federation: Federation, options: FlowerOptions) -> None:
    """ConfigError if the federation needs more than messages between its server and single clients."""
    _check_attack(federation)
    check_secrecy(federation.plan, federation.method, federation.network, between_machines=True)
    if options.late_rounds:
        _check_late_ballots(federation, options.late_rounds)


def warn_of_trusted(method: Method, allowed: Mapping[str, str] | None, clients: int) -> None:
    """Warn if others can take the numbers of trusted clients; `allowed`: the keys that may have a number."""
    trusted = list(trusted_by(method))
    if trusted and (allowed is None or len(allowed) > clients):
        why = (
            "any program may become one of these clients: name a folder of public keys in `keys`"
            if allowed is None
            else f"there are {len(allowed)} keys for {clients} clients, and the first to come get numbers: remove some"
        )
        said = f"trusted is {trusted}, but {why}; in the order of their names they are clients 0, 1, ..."
        warnings.warn(said, Doubt, stacklevel=3)


def _check_attack(federation: Federation) -> None:
    attack, oracle = federation.plan.attack, federation.plan.federation.oracle
    if federation.hostile and (attack.omniscient or attack.joint or oracle):
        raise ConfigError(
            f"attack {type(attack).__name__} (oracle: {oracle}) needs the messages of several clients, which are on "
            "different machines here: use the simulator, or an attack that works on single messages"
        )


def _check_late_ballots(federation: Federation, late_rounds: int) -> None:
    method, network = federation.method, federation.network
    if federation.plan.secure.sums_alone:
        raise ConfigError(
            f"flower.late_rounds is {late_rounds}, but a secure tally is closed when it is unmasked: set "
            "flower.late_rounds = 0"
        )
    if not BallotBox(Round(method, network, federation.key(1)), federation.start().state, 1).takes_late():
        raise ConfigError(
            f"flower.late_rounds is {late_rounds}, but {type(method).__name__} with these settings cannot count "
            "ballots of earlier rounds: use FedVote with reputation uniform, frozen float weights and another "
            "influence than trimmed, or set flower.late_rounds = 0"
        )
