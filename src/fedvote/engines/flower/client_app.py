"""Flower's ClientApp: `fedvote.engines.flower.client_app:app`."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedvote.engines.flower.client import answer_query, take_turn
from fedvote.engines.flower.client_log import EVALUATION, TALLY, VOTE, note_turn
from fedvote.engines.flower.problem import receive_problem
from fedvote.engines.flower.replies import Ballot, Refusal, reply_message
from fedvote.engines.flower.tasks import Task, read_task
from fedvote.errors import FedVoteError, NoProblemError, NoReferenceError

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    """Answer a task with a ballot, or with a refusal that names the class of the error. The error's text stays here."""
    return _answer(take_turn, VOTE, message, context)


@app.query()
def query(message: Message, context: Context) -> Message:
    """Answer a message of a secure tally: with this client's key, or with shares that unmask the tally."""
    return _answer(answer_query, TALLY, message, context)


@app.evaluate()
def evaluate(message: Message, context: Context) -> Message:
    """Answer with statistics or counts of this client's own examples."""
    from fedvote.engines.flower.client_evaluation import evaluate as judge

    return _answer(judge, EVALUATION, message, context)


def _answer(turn: Callable[[Task, Context], bytes], what: str, message: Message, context: Context) -> Message:
    outcome: Ballot | Refusal
    log, began, about = str(context.node_config.get("log", "")), time.perf_counter(), dict[str, Any]()
    try:
        task = read_task(message, receive_problem(message.content, context.state))
        about = {"run": task.problem.run, "round": task.round, "client": task.client, "what": what}
        outcome = Ballot(turn(task, context))
        about |= {"bytes_down": len(task.broadcast), "bytes_up": len(outcome.frame), **_judged(what, outcome.frame)}
    except NoReferenceError:
        outcome, about["error"] = Refusal("no-reference"), "NoReferenceError"
    except NoProblemError:
        outcome, about["error"] = Refusal("no-problem"), "NoProblemError"
    except Exception as error:
        if isinstance(error, FedVoteError):
            print(f"fedvote: {error}", file=sys.stderr, flush=True)
        else:
            traceback.print_exc()
        outcome, about["error"] = Refusal("failed", type(error).__name__), f"{type(error).__name__}: {error}"
    note_turn(log, **{"run": "", "round": 0, "what": what, **about, "seconds": time.perf_counter() - began})
    return reply_message(outcome, message)


def _judged(what: str, answer: bytes) -> dict[str, float]:
    """The accuracy in a client's answer to an evaluation, for its own log."""
    if what != EVALUATION:
        return {}
    from fedvote.engines.flower.pooled_evaluation import EXAMPLES, RIGHT_CALIBRATED, read

    counts = read(answer, len(answer) + 2**20)
    examples, right = int(counts[EXAMPLES]), counts.get(f"deployed/{RIGHT_CALIBRATED}")
    return {"accuracy": int(right) / examples} if right is not None and examples else {}
