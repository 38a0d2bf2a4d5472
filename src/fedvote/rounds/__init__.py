"""One round, as both engines run it, and the broadcasts that clients still have."""

from fedvote.rounds.held import HELD
from fedvote.rounds.round import BallotBox, Closed, Round, refusals

__all__ = ["HELD", "BallotBox", "Closed", "Round", "refusals"]
