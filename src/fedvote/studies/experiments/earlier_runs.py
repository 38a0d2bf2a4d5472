"""Runs that another machine finished: written back from an experiment's results file into run folders."""

from __future__ import annotations

import json
from pathlib import Path

from fedvote.errors import ConfigError
from fedvote.runs.folder import RunFolder
from fedvote.runs.own_files import others_than_made
from fedvote.runs.toml_tables import to_toml
from fedvote.system.atomic_file import write
from fedvote.system.own_code import files_in


def unpack(file: Path, runs: Path) -> None:
    """Write the finished runs of a results file into their folders, without checkpoints; what is there already stays.

    They have the metrics that the file has, and the environment they were made in, so later results name it.
    """
    try:
        found = json.loads(file.read_text())
        cells = [(cell["folders"], cell["seeds"], cell["config"], cell["environments"]) for cell in found["cells"]]
        made = found["environment"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"--earlier {file} cannot be read as results of runs ({error!r}), expected a JSON file that "
            "`fedvote reproduce` wrote"
        ) from None
    for names, seeds, config, environments in cells:
        for name, (seed, records) in zip(names, seeds.items(), strict=True):
            folder = RunFolder(runs / name)
            if folder.begun():
                continue
            environment = environments.get(seed, made)
            if others := others_than_made(files_in(config), environment):
                raise ConfigError(
                    f"--earlier {file} has a run that was not made by {others[0]} as it is now: restore the file, or "
                    "leave out --earlier to run it again"
                )
            write(folder.config_file, to_toml({**config, "seed": int(seed)}))
            write(folder.environment_file, json.dumps(environment))
            write(folder.metrics_file, "".join(json.dumps(record) + "\n" for record in records))
