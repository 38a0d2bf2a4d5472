"""The frame of every message: round, client, model, method, tensors, checksum. See docs/wire-format.md.

    offset  size  field
    0       4     "FVOT"
    4       2     format version
    6       4     round
    10      4     client, or -1 for the server
    14      8     fingerprint of the model (layer names and shapes)
    22      16    method, ASCII, padded with zeros
    38      1     number of tensors
    39      ...   for each tensor: codec (1), count (4), payload length (4), payload
    end-4   4     CRC-32 of everything before it

All numbers are little-endian. A receiver compares every field with the expected value before using it.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, fields

import torch

from fedvote.core import Codec, Message
from fedvote.errors import WireError

MAGIC, VERSION = b"FVOT", 7
HEAD = struct.Struct("<4sHIi8s16sB")
TENSOR = struct.Struct("<BII")
CHECKSUM = struct.Struct("<I")
WIDEST, TABLES = 8, 2**20  # most bytes, in any codec: of a value, and of all the rest of a frame


@dataclass(frozen=True)
class Header:
    round: int
    client: int
    fingerprint: bytes
    method: str


def pack(header: Header, message: Message, codecs: Mapping[str, Codec]) -> bytes:
    """Write a message as a frame."""
    check_names(message, codecs)
    name = header.method.encode("ascii", "replace")[:16]
    frame = bytearray(HEAD.pack(MAGIC, VERSION, header.round, header.client, header.fingerprint, name, len(codecs)))
    for field, codec in codecs.items():
        payload = codec.encode(message[field])
        frame += TENSOR.pack(codec.tag, codec.count, len(payload)) + payload
    return bytes(frame + CHECKSUM.pack(zlib.crc32(frame)))


def unpack(frame: bytes, expected: Header, codecs: Mapping[str, Codec], device: torch.device | str = "cpu") -> Message:
    """Read the message in a frame; WireError if the frame is damaged or not the expected one."""
    tensors = check_head(frame, expected)
    if tensors != len(codecs):
        raise WireError(f"{tensors} tensors in a frame, expected {len(codecs)}")
    message: Message = {}
    at, end = HEAD.size, len(frame) - CHECKSUM.size
    for name, codec in codecs.items():
        if at + TENSOR.size > end:
            raise WireError(f"{len(message)} tensors in a frame, expected {len(codecs)}")
        tag, count, size = TENSOR.unpack_from(frame, at)
        at += TENSOR.size
        if (tag, count) != (codec.tag, codec.count):
            raise WireError(f"{count} values of {name} by codec {tag}, expected {codec.count} by codec {codec.tag}")
        if at + size > end:
            raise WireError(f"a tensor of {size} bytes in a frame that has {end - at} left")
        message[name] = codec.decode(frame[at : at + size], device)
        at += size
    if at != end:
        raise WireError(f"{end - at} bytes too many in a frame")
    return message


def most_bytes(codecs: Mapping[str, Codec]) -> int:
    """An upper limit on the size of a frame: receivers reserve no more memory for one."""
    return TABLES + WIDEST * sum(codec.count for codec in codecs.values())


def frame_bytes(tensors: int) -> int:
    """Bytes of a frame beside its payloads."""
    return HEAD.size + TENSOR.size * tensors + CHECKSUM.size


def check_names(message: Message, codecs: Mapping[str, Codec]) -> None:
    """Refuse a message whose tensors are not those that the codecs carry, by name and type."""
    if message.keys() != codecs.keys():
        raise WireError(f"a message of {sorted(message)} cannot travel by codecs for {sorted(codecs)}")
    for name, codec in codecs.items():
        if codec.dtype not in (None, message[name].dtype):
            given = message[name].dtype
            raise WireError(f"{name!r} is {given}, expected {codec.dtype}, which {type(codec).__name__} carries")


def check_head(frame: bytes, expected: Header) -> int:
    """The number of tensors in a frame; WireError if the frame is damaged or not the expected one."""
    if not frame:
        raise WireError("nothing was sent")
    if len(frame) < HEAD.size + CHECKSUM.size:
        raise WireError(f"{len(frame)} bytes are too few for a frame")
    magic, version, round, client, fingerprint, method, count = HEAD.unpack_from(frame)
    if (magic, version) != (MAGIC, VERSION):
        raise WireError(f"a frame of {magic!r} version {version}, expected {MAGIC!r} version {VERSION}")
    if zlib.crc32(memoryview(frame)[: -CHECKSUM.size]) != CHECKSUM.unpack(frame[-CHECKSUM.size :])[0]:
        raise WireError("the checksum does not match: the frame was altered or cut")
    given = Header(round, client, fingerprint, method.rstrip(b"\0").decode("ascii", "replace"))
    wanted = Header(expected.round, expected.client, expected.fingerprint, expected.method[:16])
    for field in fields(Header):
        value, want = getattr(given, field.name), getattr(wanted, field.name)
        if value != want:
            raise WireError(f"a frame of {field.name} {value!r}, expected {want!r}")
    return int(count)
