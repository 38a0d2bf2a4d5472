"""Rounds of Flower's own `send_and_receive` in which nobody does anything."""

import json
import time
from pathlib import Path

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import Grid, ServerApp

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    while len(list(grid.get_node_ids())) < int(context.run_config["nodes"]):
        time.sleep(0.5)
    seconds = []
    for _ in range(int(context.run_config["rounds"])):
        began = time.monotonic()
        content = RecordDict({"nothing": ConfigRecord({"byte": b"0"})})
        messages = [Message(content, node, MessageType.TRAIN) for node in grid.get_node_ids()]
        replies = list(grid.send_and_receive(messages))
        assert len(replies) == len(messages) and not any(reply.has_error() for reply in replies)
        seconds.append(time.monotonic() - began)
    Path(str(context.run_config["out"])).write_text(json.dumps(seconds))
