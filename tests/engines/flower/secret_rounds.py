"""Settings of a secure tally over Flower, and the three messages of its rounds."""

from __future__ import annotations

from flwr.app import Message, MessageType

from fedvote.engines.flower.tasks import read_task
from tests.engines.flower.messages import PROBLEM

SECURE = ("secure.name=tally", "secure.rounding=seed", "rounds=2")
RULES = ("flower.deadline=30", "flower.patience=200", "flower.minimum=0.5", "flower.grace=5")


def kind_of(message: Message) -> str:
    """Which of the three messages of a round it is."""
    if message.metadata.message_type == MessageType.TRAIN:
        return "ballot"
    return "shares" if read_task(message, PROBLEM).broadcast else "key"
