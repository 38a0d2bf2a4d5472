"""Epsilon against accuracy: randomised response on votes, under a secure tally, with many voters on digits.

Each voter has 20 training images, drawn at random: 1,000 voters share images, so that epsilon is of a voter and not of
an image. Only bytes are counted: masks would change no bit. Epsilon is of all rounds together.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedvote.data import load
from fedvote.engines.simulate import simulate
from fedvote.methods import FedVote
from fedvote.models import make_model
from fedvote.privacy import NoNoise, Privacy, RandomisedResponse
from fedvote.randomness import Key
from fedvote.secure import SecureTally
from fedvote.studies.rows import Rows

VOTERS, ROUNDS, IMAGES, STEPS, BATCH = (31, 100, 1000), 10, 20, 10, 10
NOISES: tuple[tuple[float, float], ...] = ((0.25, 0.2), (0.25, 0.05), (0.25, 0.02), (0.4, 0.05))  # (flip, move)


def bench(clients: Sequence[int] = VOTERS, rounds: int = ROUNDS, device: str = "auto") -> Rows:
    """A row for each number of voters and each noise; without noise first."""
    noises: list[Privacy] = [NoNoise(), *(RandomisedResponse(flip, move) for flip, move in NOISES)]
    return [_row(K, privacy, rounds, device) for K in clients for privacy in noises]


def _row(K: int, privacy: Privacy, rounds: int, device: str) -> dict[str, object]:
    data, draw = load("digits"), Key(0).torch("private votes")
    owned = [torch.randint(len(data.train), (IMAGES,), generator=draw) for _ in range(K)]
    *_, last = simulate(
        make_model("digits-cnn", data.shape, len(data.classes)), data, FedVote(privacy=privacy, coding="plain"),
        owned=owned, start="seed", device=device, clients=K, rounds=rounds, steps=STEPS, batch=BATCH,
        evaluate_every=rounds, secure=SecureTally(count_only=True),
    )  # fmt: skip
    measured = last.record["measured"]
    return {
        "voters": K, "flip": getattr(privacy, "flip", 0.0), "move": getattr(privacy, "move", 1.0), "rounds": rounds,
        "weights": len(last.state["level"]), "epsilon_a_round": measured.get("epsilon"),
        "epsilon": measured.get("epsilon_in_all"), "delta": measured.get("delta"),
        "accuracy": last.record["accuracy"], "accuracy_float": last.record["accuracy_float"],
        "accountant": "dp-accounting, Rényi divergences" if measured.get("epsilon") else None,
    }  # fmt: skip
