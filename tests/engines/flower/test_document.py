"""What docs/deployment.md tells operators to type keeps what the page promises."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[3] / "docs" / "deployment.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```\w*\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
SERVICE = Path(__file__).parents[3] / "examples" / "service"
UNITS = [unit.read_text(encoding="utf-8") for unit in sorted(SERVICE.glob("*.service"))]


def test_whatever_starts_flower_turns_its_telemetry_off() -> None:
    starts = re.compile("^flower-super|^fedvote deploy client|^ExecStart=", re.MULTILINE)
    starting = [block for block in [*BLOCKS, *UNITS] if starts.search(block)]
    assert len(starting) == 5 and all("FLWR_TELEMETRY_ENABLED=0" in block for block in starting)


def test_no_unit_leaves_files_that_others_can_read() -> None:
    assert len(UNITS) == 3 and all("\nUMask=0077\n" in unit for unit in UNITS)


@pytest.mark.parametrize("ends_well", [True, False])
def test_the_job_succeeds_only_if_a_network_was_written_by_it(ends_well: bool, tmp_path: Path) -> None:
    """`flwr run` itself always does, and there may be a network of an earlier job."""
    network = tmp_path / "run" / "network.safetensors"
    network.parent.mkdir()
    network.write_text("of an earlier job")
    flwr = tmp_path / "flwr"
    flwr.write_text(f"#!/bin/sh\n{f'echo new > {network}' if ends_well else 'true'}\n")
    flwr.chmod(0o755)
    (command,) = [line for unit in UNITS for line in re.findall("^ExecStart=(.*flwr run.*)$", unit, re.MULTILINE)]
    arguments = shlex.split(command.replace("/srv/fedvote", str(tmp_path)))
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(arguments, env={"PATH": path}, cwd=tmp_path, check=False)
    assert (done.returncode == 0) == ends_well
