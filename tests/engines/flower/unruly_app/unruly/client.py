"""The client of the package, but with a node configuration of `late` (a round) or `mutate` it does not behave."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedvote.engines.flower.client_app import query as query_as_asked
from fedvote.engines.flower.client_app import train as train_as_asked
from fedvote.engines.flower.client_options import NODE_KEYS
from fedvote.engines.flower.replies import Ballot, read_reply, reply_message

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    reply = train_as_asked(message, as_known(context))
    if context.node_config.get("late") == (round := int(message.metadata.group_id)):
        wait_until_it_is_over(Path(str(context.node_config["metrics"])), round)
    if context.node_config.get("mutate") and isinstance(ballot := read_reply(reply), Ballot):
        frame = bytearray(ballot.frame)
        frame[len(frame) // 2] ^= 0x55
        return reply_message(Ballot(bytes(frame)), message)
    return reply


@app.query()
def query(message: Message, context: Context) -> Message:
    return query_as_asked(message, as_known(context))


def as_known(context: Context) -> Context:
    """Without the keys of this app."""
    known = {key: value for key, value in context.node_config.items() if key in NODE_KEYS}
    return replace(context, node_config=known)


def wait_until_it_is_over(metrics: Path, round: int) -> None:
    limit = time.monotonic() + 60
    while time.monotonic() < limit:
        lines = metrics.read_text().splitlines() if metrics.is_file() else []
        if any(json.loads(line)["round"] == round for line in lines):
            return
        time.sleep(0.2)
