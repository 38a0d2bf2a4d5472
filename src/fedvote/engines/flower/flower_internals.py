"""Everything that fedvote uses of Flower beyond its public modules `flwr.app`, `flwr.serverapp` and `flwr.clientapp`.

An upgrade of Flower may break this file and no other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, cast

import httpx
from flwr.app import Array, Context, Message, RecordDict, UserConfig
from flwr.app.message.arraychunk import ArrayChunk
from flwr.common.constant import ErrorCode
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_body,
    get_object_children_ids_from_object_content,
)
from flwr.supercore.inflatable.inflatable_utils import inflatable_class_registry

if TYPE_CHECKING:
    from flwr.clientapp import ClientApp
    from flwr.supercore.fab import Fab
    from flwr.supercore.run import Run
    from flwr.supercore.runtime import RuntimeHttpClient

CONNECTION_ERRORS = (httpx.HTTPError, OSError)
"""Errors that a Grid raises if it cannot reach the SuperLink. Flower documents none; it uses HTTP through httpx."""

Chunks = Mapping[str, ArrayChunk]

__all__ = [  # ErrorCode: the numbers in `flwr.app.Error`, which the public modules do not name
    "CONNECTION_ERRORS",
    "Acquired",
    "Chunks",
    "ErrorCode",
    "NodeConnection",
    "TaskQueue",
    "empty_context",
    "inflate_arrays_by",
    "inflated_nbytes",
    "message_nbytes",
    "node_connection",
    "read_node_config",
    "register",
    "slice_array",
    "take_task",
]


def read_node_config(text: str) -> UserConfig:
    """The values in a node's `--node-config`; ValueError if it is not of Flower's form."""
    from click import ClickException
    from flwr.common.config import parse_config_args

    try:
        return parse_config_args([text] if text else None)
    except ClickException as error:
        raise ValueError(error.message) from error


def message_nbytes(message: Message) -> int:
    """Bytes of a message as Flower sends it: records, their names, and metadata.

    Flower reports no size. It sends each nested object separately, so the size is the sum of their lengths.
    """
    return sum(len(part.deflate()) for part in get_all_nested_objects(message).values())


def inflated_nbytes(array: bytes, chunks: Chunks) -> int:
    """Bytes that a received array will take in memory.

    The object lists its chunks by their index among its children; a chunk may occur many times.
    """
    names = get_object_children_ids_from_object_content(array)
    places = json.loads(get_object_body(array, Array))["arraychunk_ids"]
    return sum(len(chunks[names[place]].data) for place in places)


def slice_array(array: Array, nbytes: int) -> None:
    """Make Flower send an array of a record in chunks of so many bytes; by itself it takes 5 MiB.

    Flower keeps the chunks of an array once it has made them. So we make them first.
    """
    data = memoryview(array.data)
    chunks = [ArrayChunk(data[start : start + nbytes]) for start in range(0, len(data), nbytes)]
    array.__dict__["_chunks"] = [(chunk.object_id, chunk) for chunk in chunks]


def inflate_arrays_by(inflate: Callable[[bytes, Chunks], Array]) -> None:
    """Make Flower call this function for every array that it receives.

    Flower does not limit the size of a received array. It finds the class that inflates an object in a registry, by
    the object's name: this is the one place to set a limit before memory is allocated.
    """

    class Inflating:
        @staticmethod
        def inflate(object_content: bytes, children: Chunks | None = None) -> Array:
            return inflate(object_content, children or {})

    inflatable_class_registry[Array.__qualname__] = cast(Any, Inflating)


@dataclass(frozen=True)
class Acquired:
    """A task of a SuperNode, for the program that holds its token."""

    run: int
    token: str


class TaskQueue:
    """The tasks of a SuperNode that runs with `--isolation process`, at its address on this machine."""

    def __init__(self, address: str):
        self._client = _runtime(address)

    def acquire(self) -> Acquired | None:
        """The next task, which then belongs to the caller; None if there is none."""
        from flwr.proto.runtime_pb2 import AcquireTaskRequest
        from flwr.supercore.constant import TaskType

        found = self._client.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
        return Acquired(found.task.run_id, found.token) if found.HasField("task") and found.token else None


def take_task(address: str, token: str) -> None:
    """Fetch a task, let the app that it names answer it, and send the answer: a turn of `flwr-clientapp`."""
    from flwr.common.constant import SubStatus
    from flwr.supercore.heartbeat import HeartbeatSender, make_task_heartbeat_fn_http
    from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

    client = _runtime(address, token)
    heartbeat = HeartbeatSender(make_task_heartbeat_fn_http(client))
    heartbeat.start()
    context, status, details = None, SubStatus.FAILED, "the task could not be fetched"
    try:
        message, context, run, fab = pull_task_input(client)
        try:
            reply, status, details = _installed(run, fab)(message, context), SubStatus.COMPLETED, ""
        except Exception as error:  # the app is somebody else's: it may raise anything
            reply, details = _failure(message, error), type(error).__name__
        push_message(client, reply, context)
    finally:
        push_task_output(client, context, status, details)
        heartbeat.stop()
        client.close()


def _failure(message: Message, error: Exception) -> Message:
    """The reply of Flower's own client program if an app raises."""
    from flwr.app import Error
    from flwr.clientapp.client_app import LoadClientAppError

    load = isinstance(error, LoadClientAppError)
    code = ErrorCode.LOAD_CLIENT_APP_EXCEPTION if load else ErrorCode.CLIENT_APP_RAISED_EXCEPTION
    return Message(Error(code=code, reason=f"{type(error)}:<'{error}'>"), reply_to=message)


def _installed(run: Run, fab: Fab) -> ClientApp:
    return _load(run.fab_id, run.fab_version, fab.hash_str, fab.content)


@lru_cache(maxsize=1)
def _load(fab_id: str, version: str, digest: str, content: bytes) -> ClientApp:
    """The client's app in a Flower app bundle, which is installed first."""
    from flwr.cli.install import install_from_fab
    from flwr.clientapp.utils import get_load_client_app_fn

    install_from_fab(content, skip_prompt=True)
    return get_load_client_app_fn(default_app_ref="", app_path=None, multi_app=True)(fab_id, version, digest)


def _runtime(address: str, token: str = "") -> RuntimeHttpClient:
    """A connection to a SuperNode on this machine."""
    from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, RuntimeVersionHttpInterceptor
    from flwr.supercore.retry import make_simple_http_retry_invoker
    from flwr.supercore.runtime import RuntimeHttpClient

    name = "flwr-clientapp" if token else "SuperExec"
    retry = make_simple_http_retry_invoker()
    retry.max_tries = retry.max_tries if token else 1  # who looks for tasks will look again
    signed = [RuntimeTokenHttpInterceptor(token)] if token else []
    return RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=True,  # it does not leave the machine
        root_certificates=None,
        interceptors=[
            RuntimeVersionHttpInterceptor(component_name=name),
            *signed,
        ],
        retry_invoker=retry,
    )


def register(connection: str, *keys: str) -> None:
    """`flwr supernode register KEY CONNECTION` for many keys, in one process."""
    from flwr.cli.app import app

    for key in keys:
        app(["supernode", "register", key, connection], standalone_mode=False)


def empty_context(node: int) -> Context:
    """A node's context before its first turn; `client_app` needs one, and the identity of a task."""
    from flwr.supercore.task_identity import TaskIdentity

    TaskIdentity.task_id, TaskIdentity.run_id, TaskIdentity.node_id = 1, 1, node
    return Context(1, node, {}, RecordDict(), {})


@contextmanager
def node_connection(address: str, authority: bytes, key: bytes) -> Iterator[NodeConnection]:
    """A SuperNode's connection to a SuperLink, without the SuperNode; `key`: its private key."""
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key
    from flwr.supernode.fleet_http_connection import http_request_response

    private = load_ssh_private_key(key, None)
    assert isinstance(private, EllipticCurvePrivateKey)
    with http_request_response(address, False, authority, (private, private.public_key())) as functions:
        node, receive, send, _, _, pull_object, push_object, confirm = functions
        yield NodeConnection(node, receive, send, pull_object, push_object, confirm)


@dataclass(frozen=True)
class NodeConnection:
    """Receives messages and sends replies, as Flower's SuperNode does."""

    node: int
    _receive: Callable[[], Any]
    _send: Callable[..., Any]
    _pull_object: Callable[..., bytes]
    _push_object: Callable[..., None]
    _confirm: Callable[[int, str], None]

    def receive(self) -> Message | None:
        """The next message to this node; None if there is none."""
        from flwr.supercore.inflatable.inflatable_object import iterate_object_tree
        from flwr.supercore.inflatable.inflatable_utils import inflate_object_from_contents, pull_objects

        if (received := self._receive()) is None:
            return None
        name, run = received[0].metadata.message_id, received[0].metadata.run_id
        wished = [tree.object_id for tree in iterate_object_tree(received[1])]
        parts = pull_objects(wished, partial(self._pull_object, run))
        message = inflate_object_from_contents(name, parts)
        assert isinstance(message, Message)
        message.metadata.__dict__["_message_id"] = name
        self._confirm(run, name)
        return message

    def reply(self, reply: Message) -> None:
        """Send a reply."""
        from flwr.app.message import remove_content_from_message
        from flwr.supercore.inflatable.inflatable_object import get_object_tree

        objects = {name: part.deflate() for name, part in get_all_nested_objects(reply).items()}
        reply.metadata.__dict__["_message_id"] = reply.object_id
        wanted, session = self._send(remove_content_from_message(reply), get_object_tree(reply), 0.0)
        for name in wanted:
            self._push_object(reply.metadata.run_id, session, name, objects[name])
