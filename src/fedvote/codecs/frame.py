"""The frame around every message: what it is, for which round and model, and a checksum.

    offset  size  field
    0       4     "FVOT"
    4       2     format version
    6       4     round
    10      8     fingerprint of the model (layer names and shapes)
    18      4     client, or -1 for the server
    22      ...   for each tensor, in the order both sides know: payload length (4), payload
    end-4   4     CRC-32 of everything before it

All numbers are little-endian. Names, shapes and codecs are not sent: both sides derive them from the method.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

import torch

from fedvote.core import Codec, Message, WireError

MAGIC, VERSION = b"FVOT", 1
HEAD = struct.Struct("<4sHI8si")
LENGTH = struct.Struct("<I")


@dataclass(frozen=True)
class Header:
    round: int
    fingerprint: bytes
    client: int


def pack(header: Header, message: Message, codecs: dict[str, Codec]) -> bytes:
    """One message as bytes, by the codecs given."""
    if message.keys() != codecs.keys():
        raise WireError(f"a message of {sorted(message)} cannot travel by codecs for {sorted(codecs)}")
    frame = bytearray(HEAD.pack(MAGIC, VERSION, header.round, header.fingerprint, header.client))
    for name, codec in codecs.items():
        payload = codec.encode(message[name])
        frame += LENGTH.pack(len(payload)) + payload
    return bytes(frame + LENGTH.pack(zlib.crc32(frame)))


def unpack(frame: bytes, expected: Header, codecs: dict[str, Codec], device: torch.device | str = "cpu") -> Message:
    """The message in a frame, or WireError if it is not the one expected."""
    payloads = _payloads(frame, expected, len(codecs))
    return {
        name: codec.decode(payload, device) for (name, codec), payload in zip(codecs.items(), payloads, strict=True)
    }


def _payloads(frame: bytes, expected: Header, count: int) -> list[bytes]:
    if len(frame) < HEAD.size + LENGTH.size:
        raise WireError(f"{len(frame)} bytes are too few for a frame")
    magic, version, *rest = HEAD.unpack_from(frame)
    if (magic, version) != (MAGIC, VERSION):
        raise WireError(f"a frame of {magic!r} version {version}, expected {MAGIC!r} version {VERSION}")
    if zlib.crc32(frame[: -LENGTH.size]) != LENGTH.unpack(frame[-LENGTH.size :])[0]:
        raise WireError("the checksum does not fit: the frame was altered or cut")
    got = Header(*rest)
    for what in ("fingerprint", "round", "client"):
        if getattr(got, what) != getattr(expected, what):
            raise WireError(f"a frame of {what} {getattr(got, what)!r}, expected {getattr(expected, what)!r}")
    payloads: list[bytes] = []
    at, end = HEAD.size, len(frame) - LENGTH.size
    for _ in range(count):
        if at + LENGTH.size > end:
            raise WireError(f"{len(payloads)} tensors in a frame, expected {count}")
        size = LENGTH.unpack_from(frame, at)[0]
        at += LENGTH.size
        if at + size > end:
            raise WireError(f"a tensor of {size} bytes in a frame that has {end - at} left")
        payloads.append(frame[at : at + size])
        at += size
    if at != end:
        raise WireError(f"{end - at} bytes too many in a frame")
    return payloads
