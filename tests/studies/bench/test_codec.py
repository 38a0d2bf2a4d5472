"""The benchmark of coded ballots: bits that fit together, of recorded ballots those of the run."""

from __future__ import annotations

import math

import pytest

from fedvote.engines.simulate import Simulation
from fedvote.runs.config import read
from fedvote.runs.experiment import federation
from fedvote.studies.bench.ballots import drawn, recorded
from fedvote.studies.bench.codec import bench

SMALL = ("federation.clients=3", "local.steps=2", "local.batch=16")


def test_coded_ballots_are_near_their_entropy_and_below_plain_ones() -> None:
    rows = {(row["votes"], row["way"]): row for row in bench(only=["drawn"], weights=20_000, cohort=5, repeats=1)}
    assert {way for votes, way in rows if votes == "ternary"} == {
        "entropy-coded",
        "plain",
        "plain, zlib",
        "plain, zstd",
    }
    assert rows["binary", "numpy packbits"]["bits_per_weight"] == 1
    for (votes, way), row in rows.items():
        assert 0 < row["encode_seconds"] < math.inf and 0 < row["decode_seconds"] < math.inf
        assert row["cohort_bits_per_weight"] is None
        if way == "entropy-coded":
            floor, plain = row["entropy_bits_per_weight"], rows[votes, "plain"]["bits_per_weight"]
            assert 0.95 * floor < row["bits_per_weight"] < min(1.5 * floor + 0.1, plain)


def test_recorded_ballots_have_the_bits_that_the_run_counts() -> None:
    """One client: its ballot is all that is sent, but for the header of its message."""
    one = [*SMALL[1:], "federation.clients=1", "rounds=2"]
    counted = [
        snapshot.record["uplink_bytes"] for snapshot in Simulation(federation(read("quickstart", one), "cpu")).run()
    ]
    binary = [ballot for ballot in recorded("quickstart", one[:-1], rounds=2) if ballot.votes == "binary"]
    sizes = [len(ballot.codec().encode(ballot.values)) for ballot in binary]
    assert [each.origin for each in binary] == ["quickstart, round 1", "quickstart, round 2"]
    headers = [whole - size for whole, size in zip(counted, sizes, strict=True)]
    assert 0 < headers[0] < 100 and headers[0] == headers[1]
    of_the_run = [8 * whole / len(each.values) for whole, each in zip(counted, binary, strict=True)]
    assert [each.cohort_bits for each in binary] == pytest.approx(of_the_run, rel=0.01)


def test_drawn_binary_ballots_take_the_bits_of_real_ones() -> None:
    """So that they are coded as fast as real ones: rounds of VGG-7 have 0.10 to 0.18 bits."""
    binary, _ = drawn(100_000, 31)
    assert 0.10 < 8 * len(binary.codec().encode(binary.values)) / 100_000 < 0.18


def test_recorded_ballots_have_bits_and_no_times() -> None:
    """Ballots of digits are too small to be timed, and a run may share its machine."""
    rows = bench(set=SMALL, rounds=1, only=["recorded"], repeats=1)
    assert all(row["bits_per_weight"] > 0 and row["cohort_bits_per_weight"] > 0 for row in rows)
    assert {(row["encode_seconds"], row["decode_seconds"]) for row in rows} == {(None, None)}


def test_recorded_ballots_are_of_both_kinds_of_the_first_and_the_last_round() -> None:
    rows = [row for row in bench(set=SMALL, rounds=3, only=["recorded"], repeats=1) if row["way"] == "entropy-coded"]
    assert [(row["votes"], row["ballot"][-1]) for row in rows] == [
        ("binary", "1"), ("binary", "3"), ("ternary", "1"), ("ternary", "3")
    ]  # fmt: skip
