"""The benchmark of the server measures a real round, and the round counts what the simulator counts."""

from __future__ import annotations

import pytest

from fedvote.studies.bench import server


def test_a_small_round_counts_every_ballot_and_is_the_simulators(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LAYERS", ((20, 10), (10, 20)))
    rows = server.bench(clients=[5])
    assert [row["rule"] for row in rows] == ["uniform", "camps"]
    for row in rows:
        assert row["counted"] == 5 and row["weights"] == 400 and row["same_as_simulated"]
        assert row["faster_on_all_cores"] > 0 and row["ballot_bytes"] < 400
