"""What the tallies of a run gave away about one client, in one sentence for the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

WEAK = 10.0  # epsilon from which on a bound promises next to nothing: odds may change by a factor of exp(10), 22,000


def spent(records: Sequence[Mapping[str, Any]]) -> str:
    """Epsilon and delta of all rounds so far; empty if no round has an account."""
    accounts = [record["measured"] for record in records if "epsilon_in_all" in record.get("measured", {})]
    if not accounts:
        return ""
    epsilon, delta = accounts[-1]["epsilon_in_all"], accounts[-1]["delta"]
    promise = "which promises next to nothing: take more clients, fewer rounds or a smaller method.privacy.move"
    weak = f", {promise}" if epsilon >= WEAK else ""
    return f"privacy of each client, over all rounds: epsilon {epsilon:.1f}, delta {delta:g}{weak}"
