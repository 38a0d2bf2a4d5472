"""Where a client keeps its files of a run, if its node has a folder for them."""

from __future__ import annotations

import re
from pathlib import Path

from flwr.app import UserConfig

from fedvote.engines.flower.tasks import Task
from fedvote.errors import ConfigError

RUN_NAMES = re.compile("[0-9a-f]{1,64}")


def memory_file(node: UserConfig, task: Task) -> Path | None:
    if "memory" not in node:
        return None
    if not RUN_NAMES.fullmatch(task.problem.run):  # the server chose it: it must not lead out of the folder
        raise ConfigError(
            f"the server calls its run {task.problem.run!r}, expected up to 64 hex digits: ask its operator"
        )
    return Path(str(node["memory"])) / f"{task.problem.run}-{task.client}.safetensors"
