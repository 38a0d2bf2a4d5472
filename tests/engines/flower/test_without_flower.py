"""Without flwr everything else works, and the Flower engine says what to install."""

from __future__ import annotations

import subprocess
import sys

CODE = """
import sys
sys.modules["flwr"] = None
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "flwr" else find(name, *rest)
import fedvote, fedvote.cli, fedvote.runs.experiment
assert not any(name.startswith("flwr.") for name in sys.modules)
fedvote.cli.main(["deploy", "local"])
"""


def test_the_command_line_says_what_to_install() -> None:
    made = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=False)
    assert made.returncode == 2
    assert made.stderr.strip().endswith("pip install '.[flower]' in a clone"), made.stderr
