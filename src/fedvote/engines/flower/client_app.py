"""Flower's ClientApp: `fedvote.engines.flower.client_app:app`."""

from __future__ import annotations

import traceback

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedvote.engines.flower.client import take_turn
from fedvote.engines.flower.replies import Ballot, Refusal, reply_message
from fedvote.engines.flower.tasks import read_task
from fedvote.errors import NoReferenceError

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Answer a task with a ballot, or with a refusal that names the class of the error. The error's text stays here."""
    outcome: Ballot | Refusal
    try:
        outcome = Ballot(take_turn(read_task(message), context))
    except NoReferenceError:
        outcome = Refusal("no-reference")
    except Exception as error:
        traceback.print_exc()
        outcome = Refusal("failed", type(error).__name__)
    return reply_message(outcome, message)
