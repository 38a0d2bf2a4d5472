"""A problem that tasks are about, and messages as Flower sends them."""

from __future__ import annotations

from flwr.app import Message
from flwr.supercore.inflatable.inflatable_object import get_all_nested_objects
from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents

from fedvote.engines.flower.problem import Problem

FILES = (("/srv/net.py", "0f"), ("/srv/rule.py", "f0"))
PROBLEM = Problem("rounds = 3\n", (1, 8, 8), 10, (0.3,), (0.4,), "a run", "float32", True, FILES)


def over_the_wire(message: Message) -> Message:
    """Taken apart into the objects that Flower sends, and put together again."""
    parts = {name: part.deflate() for name, part in get_all_nested_objects(message).items()}
    made = inflate_object_from_contents(message.object_id, parts)
    assert isinstance(made, Message)
    return made
