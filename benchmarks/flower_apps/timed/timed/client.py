"""The client of the package; how long its own work took, from the first import on, is written down."""

import time

BEGAN = time.monotonic()

from pathlib import Path  # noqa: E402

from flwr.app import Context, Message  # noqa: E402
from flwr.clientapp import ClientApp  # noqa: E402

from fedvote.engines.flower.client_app import train as train_as_asked  # noqa: E402

app = ClientApp()


@app.train()
def train(message: Message, context: Context) -> Message:
    reply = train_as_asked(message, context)
    with Path(str(context.node_config["watch"])).open("a") as file:
        file.write(f"{message.metadata.group_id} {time.monotonic() - BEGAN}\n")
    return reply
