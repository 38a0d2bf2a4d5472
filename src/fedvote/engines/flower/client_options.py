"""The options of a client, checked before its SuperNode starts: mistakes show here, and not in every round.

Flower checks its other options itself.
"""

from __future__ import annotations

import re
import socket
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from flwr.app import UserConfig

from fedvote.engines.flower.flower_internals import read_node_config
from fedvote.errors import ConfigError, Doubt

NODE_KEYS = ("data", "memory", "device", "log", "key", "keys", "tally")
FLOWERS_KEYS = ("partition-id", "num-partitions")  # given to every node by Flower's simulation
FUNCTION = re.compile(r"(\.py):\w+$")  # of FILE.py:FUNCTION
FILES = {"--root-certificates": "ca.crt of the server", "--auth-supernode-private-key": "the key of this client"}


def check_client(options: Sequence[str], port: int) -> None:
    """ConfigError if a client cannot start with these options of flower-supernode and this port."""
    given = _by_name(options)
    if "--superlink" not in given:
        raise ConfigError("--superlink is not given, expected the server's address: add --superlink HOST:PORT")
    for name, content in FILES.items():
        if name in given and not Path(given[name]).is_file():
            raise ConfigError(f"{name} is {given[name]}, which is not a file, expected {content}: correct the path")
    _check_node(given.get("--node-config", ""))
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the SuperNode does: it may just have ended
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConfigError(f"port {port} cannot be used ({error.strerror}): choose another, --port N") from error


def check_keys(node: UserConfig) -> None:
    """ConfigError if a node's configuration has a key that fedvote does not know."""
    if unknown := _unknown(node):
        raise ConfigError(unknown)


def _unknown(node: UserConfig) -> str:
    """A sentence about the keys that fedvote does not know; empty if there are none."""
    unknown = sorted(node.keys() - {*NODE_KEYS, *FLOWERS_KEYS})
    names = ", ".join(unknown)
    return f"the node's configuration has no key {names}; known: {', '.join(NODE_KEYS)}" if unknown else ""


def _check_node(text: str) -> None:
    try:
        node = read_node_config(text)
    except ValueError as error:
        raise ConfigError(
            f"--node-config is {text}, expected keys with values in double quotes, such as "
            """'data="/srv/hospital" log="/srv/turns.jsonl"': correct it"""
        ) from error
    if unknown := _unknown(node):  # fedvote's app refuses it in every round, but another app may know it
        warnings.warn(unknown, Doubt, stacklevel=2)
    for name in ("data", "key", "keys"):
        path = FUNCTION.sub(r"\1", str(node.get(name, "")))
        if name in node and not Path(path).exists():
            raise ConfigError(f"{name} in --node-config is {node[name]}, but there is no {path}: correct the path")


def _by_name(options: Sequence[str]) -> Mapping[str, str]:
    """Option -> value, of `--option value` and `--option=value`."""
    found = {}
    for word, following in zip(options, [*options[1:], ""], strict=True):
        name, equals, value = word.partition("=")
        if name.startswith("--"):
            found[name] = value if equals else following
    return found
