"""Ballots for benchmarks: recorded in a real round, or drawn at any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import get_args

import numpy as np
import torch
from torch import Tensor

from fedvote.codecs import EntropyVotes
from fedvote.engines.simulate import Simulation
from fedvote.methods.fedvote import FedVote, Votes
from fedvote.methods.fedvote.ballot_wire import ballot_codec
from fedvote.quantize import round_by_shared_random
from fedvote.randomness import Key
from fedvote.runs.config import read
from fedvote.runs.experiment import federation
from fedvote.runs.toml_tables import in_order
from fedvote.system.device import repeatable

MOVED = 0.18  # standard deviation of a latent weight's change in a drawn turn: binary ballots of 0.13 bits, as VGG-7's


@dataclass(frozen=True)
class Ballot:
    """One client's votes, and how to make the codec that its message has."""

    origin: str
    votes: Votes
    values: Tensor  # (D,), on the CPU
    codec: Callable[[], EntropyVotes]
    cohort_bits: float | None = None  # a weight, in the messages of all clients of the round on average


def recorded(preset: str, settings: Sequence[str], rounds: int, device: str = "cpu") -> Iterator[Ballot]:
    """A ballot of client 0 in the first and in the last round of a run, binary and then ternary."""
    for votes in get_args(Votes):
        config = read(preset, in_order([*settings, f"method.votes={votes}", f"rounds={rounds}"]))
        planned = federation(config, device)
        method, network = planned.method, planned.placed()
        assert isinstance(method, FedVote)  # other methods have no `votes`
        training, last = planned.training.to(planned.device), planned.start()
        for snapshot in Simulation(planned).run(network=network):
            if snapshot.round in (1, rounds):
                key = planned.key(snapshot.round, 0)
                with repeatable():
                    down, batches = method.broadcast(last.state), planned.batches(training, [key])
                    message, _ = method.local(network, down, batches, method.memory(network), [key])
                here = {name: value.cpu() for name, value in down.items()}
                codec = partial(ballot_codec, method.alphabet, here, key)  # made for every ballot, as in a run
                origin, cohort_bits = f"{preset}, round {snapshot.round}", snapshot.record["uplink_bits_per_weight"]
                yield Ballot(origin, votes, message["votes"][0].cpu(), codec, cohort_bits)
            last = snapshot


def drawn(weights: int, clients: int) -> Iterator[Ballot]:
    """Soft votes from Beta(0.3, 0.3), mostly near 0 or 1 as in training; a ballot of one more client, a bit moved."""
    for votes in get_args(Votes):
        method = FedVote(votes=votes)
        levels = (len(method.alphabet) - 1) * clients + 1
        rng = Key(0).numpy("bench")
        level = torch.from_numpy(np.rint(rng.beta(0.3, 0.3, weights) * (levels - 1)).astype(np.int16))
        down = {"level": level, "levels": torch.tensor([levels - 1], dtype=torch.int16)}
        phi, key = method.normalisation, Key(0, 1, 0)
        moved = phi.inverse(method.soft(down)) + MOVED * torch.from_numpy(rng.normal(size=weights)).float()
        (values,) = round_by_shared_random(phi(moved)[None], method.alphabet, [key])
        yield Ballot("drawn", votes, values, partial(ballot_codec, method.alphabet, down, key))
