"""A Flower app with a stopwatch: the package's client, and a server whose rounds do nothing.

It is copied out of the package before it runs: importing fedvote is a large part of a client's work, and is timed.
"""

import json
import time
from pathlib import Path

BEGAN, SPENT, FIRST = time.monotonic(), 0.0, True

from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict  # noqa: E402
from flwr.clientapp import ClientApp  # noqa: E402
from flwr.serverapp import Grid, ServerApp  # noqa: E402

server = ServerApp()
client = ClientApp()


@client.train()
def turn(message: Message, context: Context) -> Message:
    """Take the package's turn and write its seconds beside the run folder; for the server below, do nothing.

    A line has the round, the seconds of the turn, and the CPU seconds of this process since its last turn.
    """
    global SPENT, FIRST
    began = BEGAN if FIRST else time.monotonic()  # the first turn of a process includes its imports
    if "rounds" in context.run_config:
        return Message(message.content, reply_to=message)
    from fedvote.engines.flower.client_app import train

    reply = train(message, context)
    with Path(f"{context.run_config['out']}-{context.node_id}").open("a") as file:
        file.write(f"{message.metadata.group_id} {time.monotonic() - began} {time.process_time() - SPENT}\n")
    SPENT, FIRST = time.process_time(), False
    return reply


@server.main()
def rounds(grid: Grid, context: Context) -> None:
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
