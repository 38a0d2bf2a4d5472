"""Flower's ClientApp: `fedvote.engines.flower.client_app:app`."""

from __future__ import annotations

import traceback
from collections.abc import Callable

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedvote.engines.flower.client import answer_query, take_turn
from fedvote.engines.flower.replies import Ballot, Refusal, reply_message
from fedvote.engines.flower.tasks import Task, read_task
from fedvote.errors import NoReferenceError

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Answer a task with a ballot, or with a refusal that names the class of the error. The error's text stays here."""
    return _answer(take_turn, message, context)


@app.query()
def query(message: Message, context: Context) -> Message:
    """Answer a message of a secure tally: with this client's key, or with shares that unmask the tally."""
    return _answer(answer_query, message, context)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Answer with statistics or counts of this client's own examples."""
    from fedvote.engines.flower.client_evaluation import evaluate as judge

    return _answer(judge, message, context)


def _answer(turn: Callable[[Task, Context], bytes], message: Message, context: Context) -> Message:
    outcome: Ballot | Refusal
    try:
        outcome = Ballot(turn(read_task(message), context))
    except NoReferenceError:
        outcome = Refusal("no-reference")
    except Exception as error:
        traceback.print_exc()
        outcome = Refusal("failed", type(error).__name__)
    return reply_message(outcome, message)
