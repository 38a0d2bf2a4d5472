"""The description of a run: environment.json and clients.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fedvote.data.show import class_counts
from fedvote.data.strata import strata
from fedvote.federation import Federation
from fedvote.methods import METHODS
from fedvote.network.summary import Summary
from fedvote.runs.environment import environment as this_machine
from fedvote.runs.folder import RunFolder
from fedvote.runs.own_files import FILES, own_files
from fedvote.system.atomic_file import write

JUDGED_BY = "judged_by"  # in environment.json: source and digest of the data that the run was judged by
ELSEWHERE = "brought by clients and server"  # in environment.json: the configuration does not name the data


def describe(
    folder: RunFolder,
    federation: Federation,
    judged_by: Mapping[str, Any] | None = None,
    summary: Summary | None = None,
) -> None:
    """Write environment.json, and clients.json if the clients' data are on this machine.

    `judged_by`: the data by which the run is judged (judged_by.py).
    """
    about: dict[str, Any] = this_machine(federation.device)
    about["network"] = (summary or federation.summary()).as_json()
    if (config := folder.config()) and (files := own_files(config)):
        about[FILES] = files
    if (method := type(federation.method)) not in METHODS.values() and method.explains:
        about["measured"] = dict(method.explains)
    if federation.data_elsewhere:
        about["data"] = ELSEWHERE
    if judged_by is not None:
        about[JUDGED_BY] = judged_by
    write(folder.environment_file, json.dumps(about, indent=2) + "\n")
    if federation.data_elsewhere:
        return
    counts = class_counts(federation.data, [part.numpy() for part in federation.owned])
    clients = {
        "classes": list(strata(federation.data)[1]),
        "counts": counts.tolist(),
        "hostile": list(federation.hostile),
    }
    write(folder.path / "clients.json", json.dumps(clients))
