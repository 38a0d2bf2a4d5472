"""What a run's network is worth in every format: bytes and accuracy on the test data.

fedvote run fashion-mnist --set rounds=6 --out runs/fashion
python benchmarks/export.py runs/fashion --out results/export-fashion-mnist.json
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from fedvote.export.export_run import export_run
from fedvote.runs.folder import NETWORK, RunFolder, environment
from fedvote.system.device import find_device


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    folder = RunFolder(options.run)
    last = folder.metrics()[-1]
    files: dict[str, Any] = {
        "network.safetensors": {
            "bytes": (options.run / NETWORK).stat().st_size,
            "accuracy": last["accuracy_calibrated"],
        }
    }
    with tempfile.TemporaryDirectory() as made:
        for name, to, int8 in (("onnx", "onnx", False), ("onnx, int8", "onnx", True), ("c", "c", False)):
            exported, accuracy = export_run(options.run, to, Path(made) / f"network.{to}", int8, test=True)
            files[name] = {"bytes": exported.nbytes, "agreement": exported.agreement, "accuracy": accuracy}
            print(f"{name:12} {exported.nbytes:>12,} bytes  {accuracy:.4f}")
    about = {"environment": environment(find_device("cpu")), "rounds": last["round"], "files": files}
    options.out.write_text(json.dumps({**about, "config": folder.config_file.read_text()}, indent=2) + "\n")


if __name__ == "__main__":
    main()
