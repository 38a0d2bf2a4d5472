"""Votes as they are: their rounding is the only noise, and no number says what they give away."""

from __future__ import annotations

from dataclasses import dataclass

from fedvote.privacy.privacy import Privacy


@dataclass(frozen=True)
class NoNoise(Privacy):
    pass
