"""The benchmark of coded ballots: bits that fit together."""

from __future__ import annotations

import math

from fedvote.studies.bench.codec import bench


def test_coded_ballots_are_near_their_entropy_and_below_plain_ones() -> None:
    rows = {(row["votes"], row["way"]): row for row in bench(weights=20_000, cohort=5, repeats=1)}
    assert {way for votes, way in rows if votes == "ternary"} == {
        "entropy-coded",
        "plain",
        "plain, zlib",
        "plain, zstd",
    }
    assert rows["binary", "numpy packbits"]["bits_per_weight"] == 1
    for (votes, way), row in rows.items():
        assert 0 < row["encode_seconds"] < math.inf and 0 < row["decode_seconds"] < math.inf
        if way == "entropy-coded":
            floor, plain = row["entropy_bits_per_weight"], rows[votes, "plain"]["bits_per_weight"]
            assert 0.95 * floor < row["bits_per_weight"] < min(1.5 * floor + 0.1, plain)
