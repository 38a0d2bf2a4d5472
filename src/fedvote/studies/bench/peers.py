"""One job in fedvote, pfl-research, Flower's simulation and a plain PyTorch loop, in turn on one machine.

The programs are in the folder peers/ of a clone. Its README describes them, and what is timed.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fedvote.errors import ConfigError
from fedvote.studies.rows import Rows, chosen
from fedvote.system.device import find_device

PEERS = ("fedvote", "pfl", "flower", "loop")


def bench(only: Sequence[str] = (), rounds: int = 5, device: str = "auto") -> Rows:
    """A row for each way of running a peer; rows of peers that cannot be imported say why."""
    program, peers = Path("peers") / "run.py", chosen(only, PEERS, "peers")
    if not program.is_file():
        raise ConfigError(f"there is no {program} here: run `fedvote bench peers` from the root of a clone")
    command = [sys.executable, str(program), find_device(device).type, str(rounds), *peers]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    rows: Rows = json.loads(done.stdout)
    return rows
