"""Flower's ClientApp: `fedvote.engines.flower.client_app:app`."""

from __future__ import annotations

import traceback

from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from fedvote.engines.flower.client import take_turn
from fedvote.engines.flower.messages import answer, read_task


class ClientFailed(Exception):
    """Names the kind of error and no more: the text of an error may hold data, and data stay on the client."""


app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    try:
        return answer(take_turn(read_task(message), context), message)
    except Exception as error:
        traceback.print_exc()
        raise ClientFailed(f"{type(error).__name__}, see the log on the client's machine") from None
