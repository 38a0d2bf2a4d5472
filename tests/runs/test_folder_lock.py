"""Nobody else works on a run that is going on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from fedvote.runs.folder import RunFolder
from tests.runs.run_folders import SMALL, filled, refuse


def test_nobody_else_in_a_process_works_on_its_run(tmp_path: Path) -> None:
    folder = filled(tmp_path, 1)
    folder.claim(SMALL, resume=True)
    refuse("is the folder of a run that is going on", RunFolder(tmp_path), SMALL)
    refuse("is the folder of a run that is going on", folder, SMALL)  # it was not let go by the first refusal
    folder.release()
    assert RunFolder(tmp_path).claim(SMALL, resume=True) is not None


def test_two_processes_do_not_work_on_one_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.claim(SMALL, resume=False)
    claim = "import sys, pathlib; from fedvote.runs.folder import RunFolder as R; f = R(pathlib.Path(sys.argv[1])); "
    command = [sys.executable, "-c", claim + "f.claim(f.config(), True)", str(folder.path)]
    second = subprocess.run(command, capture_output=True, text=True, check=False)
    assert second.returncode == 1 and "is the folder of a run that is going on" in second.stderr
    folder.release()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
