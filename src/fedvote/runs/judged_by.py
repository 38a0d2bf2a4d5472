"""The data that a run was judged by: their source and their digest, in environment.json.

`source` is a dataset's name, FILE.py:NAME, or a folder with test.npz. Whoever needs the data again gets these, or an
error: data of another digest, or of another place, would answer another question.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedvote.core import Dataset, Examples
from fedvote.data import DATASETS
from fedvote.data.npz_folder import test_data
from fedvote.errors import ConfigError, FedVoteError
from fedvote.federation import Federation
from fedvote.runs.config import Config
from fedvote.runs.description import ELSEWHERE, JUDGED_BY
from fedvote.runs.experiment import configured_data, dataset, with_validation
from fedvote.runs.folder import RunFolder
from fedvote.system.own_code import absolute_name, check_trust, files_in

CLIENTS = "its clients; no example was on the server"


def judged_by(source: str, data: Dataset) -> dict[str, Any]:
    """The entry of environment.json about the data of a run."""
    place = source if source in DATASETS else absolute_name(source)
    place = str(Path(place).resolve()) if Path(place).is_dir() else place
    return {
        "source": place if len(data.test) else CLIENTS,
        "examples": len(data.test),
        "test": digest_of(data.test),
        "train": digest_of(data.train),  # batch norm is calibrated on these
    }


def digest_of(examples: Examples) -> str:
    """BLAKE2b, 8 bytes, of inputs, labels and scaling."""
    scaling = (str(examples.x.dtype), tuple(examples.x.shape), examples.mean, examples.std)
    hashed = hashlib.blake2b(repr(scaling).encode(), digest_size=8)
    for values in (examples.x, examples.y):
        hashed.update(values.cpu().contiguous().numpy().data)
    return hashed.hexdigest()


def data_of_run(folder: RunFolder) -> Dataset:
    """The data that the run in a folder was judged by; ConfigError if they are not here."""
    config, about = folder.config(), folder.environment()
    if config is None:
        raise ConfigError(
            f"{folder.path} is not a run folder, so its data are unknown: give the folder with config.toml"
        )
    table = about.get(JUDGED_BY)
    if table is None and about.get("data") == ELSEWHERE:
        raise ConfigError(f"{folder.path} does not say which data it was judged by: name the data with --data")
    if table is not None and table.get("source") == CLIENTS:
        raise ConfigError(f"the run in {folder.path} was judged by {CLIENTS}: name the data to use with --data")
    found = judged_by(table["source"] if table else config.data.name, data := _load(folder, config, table))
    for name in ("test", "train"):
        if table is not None and table.get(name) != found[name]:
            raise ConfigError(
                f"the {name} examples of {found['source']} are not those that the run in {folder.path} was judged by "
                f"(digest {found[name]} here, {table.get(name)} there): restore them, or name other data with --data"
            )
    return data


def check_same_data(folder: RunFolder, federation: Federation, now: Mapping[str, Any]) -> None:
    """Refuse to resume a run on data of another place, or on test examples that have not judged it so far."""
    about = folder.environment() if folder.begun() else {}
    if about.get("data") == ELSEWHERE and not federation.data_elsewhere:
        raise ConfigError(
            f"{folder.path} holds a run on data that its clients and its server brought, not on the data that its "
            f"configuration names: {folder.how_to_resume()}, or choose another folder with --out"
        )
    before = about.get(JUDGED_BY)
    if isinstance(before, dict) and before.get("test") != now["test"]:
        raise ConfigError(
            f"{folder.path} holds a run that was judged by {before.get('source')} (digest {before.get('test')}), and "
            f"{now['source']} has other examples ({now['test']}): restore them, or choose another folder with --out"
        )


def data_from(source: str) -> Dataset:
    """Data that a user names: a dataset, FILE.py:NAME, or a folder with test.npz."""
    return test_data(Path(source)) if source not in DATASETS and Path(source).is_dir() else dataset(source)


def _load(folder: RunFolder, config: Config, table: Any) -> Dataset:
    source = config.data.name
    try:
        if table is not None:
            source = str(table["source"])
        if not folder.trust:
            check_trust(folder.environment_file, files_in(source))
        configured = source == config.data.name
        data = configured_data(config.data) if configured else data_from(source)
    except (FedVoteError, KeyError, TypeError) as error:
        raise ConfigError(
            f"the data that the run in {folder.path} was judged by, {source}, are not here ({error}): copy them "
            "here, or name other data with --data"
        ) from error
    return with_validation(config, data) if configured else data
