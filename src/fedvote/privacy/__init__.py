"""Noise that clients add to their own votes, by name, with an account of what a tally of them gives away."""

from __future__ import annotations

from fedvote.privacy.no_noise import NoNoise
from fedvote.privacy.privacy import Privacy
from fedvote.privacy.randomised_response import RandomisedResponse

PRIVACIES: dict[str, type[Privacy]] = {
    "none": NoNoise,
    "randomised-response": RandomisedResponse,
}

__all__ = ["PRIVACIES", "NoNoise", "Privacy", "RandomisedResponse"]
