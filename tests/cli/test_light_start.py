"""What only has to answer loads no torch."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import fedvote
from tests.cli.every_command import EVERY

HEAVY = "[name for name in ('torch', 'numpy', 'sklearn') if name in sys.modules]"
ANSWER = f"""
import json, sys
from fedvote.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as stop:
        print(*arguments, stop.code, {HEAVY}, file=sys.stderr)
"""


def stderr_of(code: str, *arguments: str) -> str:
    made = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    return made.stderr.strip()


def test_help_needs_no_torch() -> None:
    asked = [*([*path, "--help"] for path in EVERY), ["--version"], ["list", "presets"]]
    answered = stderr_of(ANSWER, json.dumps(asked)).splitlines()
    assert answered == [f"{' '.join(arguments)} 0 []" for arguments in asked]


def test_the_first_name_that_needs_torch_loads_it_and_no_name_its_compiler() -> None:
    code = f"import sys, fedvote; fedvote.ConfigError; early = {HEAVY}; from fedvote import *; "
    code += f"import fedvote.runs.config; FedVote(); late = {HEAVY}; compiler = 'torch._dynamo' in sys.modules; "
    assert stderr_of(code + "print(early, late[0], compiler, file=sys.stderr)") == "[] torch False"


def test_type_checkers_are_shown_the_names_that_are_there() -> None:
    tree = ast.parse(Path(str(fedvote.__file__)).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    shown = {alias.name: node.module for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert shown == fedvote._MODULE_OF and sorted(shown) == sorted(fedvote.__all__)
    assert set(fedvote.__all__) <= set(dir(fedvote))
    with pytest.raises(AttributeError, match="'fedvote' has no attribute 'FedVotes'"):
        fedvote.FedVotes  # noqa: B018
