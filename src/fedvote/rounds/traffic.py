"""The bytes of a round, for its record."""

from __future__ import annotations


def traffic(up: int, down: int, sent: int, received: int, weights: int) -> dict[str, float]:
    """Bytes of a round and bits per weight: `received` clients got `down` bytes, `sent` clients sent `up` bytes."""
    up_bits, down_bits = 8 * up / (max(sent, 1) * weights), 8 * down / (max(received, 1) * weights)
    return {
        "uplink_bytes": up,
        "downlink_bytes": down,
        "total_bytes": up + down,
        "uplink_bits_per_weight": up_bits,
        "downlink_bits_per_weight": down_bits,
        "total_bits_per_weight": up_bits + down_bits,
    }
