"""The frame around every message: what it is, for which round and model, and a checksum. See docs/wire-format.md.

    offset  size  field
    0       4     "FVOT"
    4       2     format version
    6       4     round
    10      4     client, or -1 for the server
    14      8     fingerprint of the model (layer names and shapes)
    22      16    method, ASCII, filled up with zeros
    38      1     number of tensors
    39      ...   for each tensor: codec (1), count (4), payload length (4), payload
    end-4   4     CRC-32 of everything before it

All numbers are little-endian. Whatever a frame claims is compared with what the receiver expects before it is used.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby

import torch

from fedvote.codecs.pending import wait_for
from fedvote.core import Codec, Length, Message
from fedvote.errors import UnwritableError, WireError

MAGIC, VERSION = b"FVOT", 5
HEAD = struct.Struct("<4sHIi8s16sB")
TENSOR = struct.Struct("<BII")
CHECKSUM = struct.Struct("<I")
WIDEST, TABLES = 8, 2**20  # bytes: of a value, in any codec, and of all that a frame has besides values


@dataclass(frozen=True)
class Header:
    round: int
    client: int
    fingerprint: bytes
    method: str


@dataclass(frozen=True, eq=False)
class Parcel:
    """A message that stays in one process: it has the size of its frame, whose bytes are never made."""

    stack: Message  # the messages that were posted with it, K in front
    row: int  # which of them it is
    lengths: Sequence[Length]  # of its parts; some may still be being found
    refusal: str = ""  # why a receiver of the bytes would refuse them

    def __len__(self) -> int:
        return sum(map(wait_for, self.lengths))

    @property
    def message(self) -> Message:
        return {name: values[self.row] for name, values in self.stack.items()}


def pack(header: Header, message: Message, codecs: dict[str, Codec]) -> bytes:
    """One message as bytes, by the codecs given."""
    _check_names(message, codecs)
    name = header.method.encode("ascii", "replace")[:16]
    frame = bytearray(HEAD.pack(MAGIC, VERSION, header.round, header.client, header.fingerprint, name, len(codecs)))
    for field, codec in codecs.items():
        payload = codec.encode(message[field])
        frame += TENSOR.pack(codec.tag, codec.count, len(payload)) + payload
    return bytes(frame + CHECKSUM.pack(zlib.crc32(frame)))


def pack_stack(headers: Sequence[Header], stack: Message, codecs: Iterable[dict[str, Codec]]) -> list[bytes]:
    """Messages of several clients, K in front, each by codecs of its own; nothing of what no codec can write."""
    rows = {name: values.unbind() for name, values in stack.items()}
    frames: list[bytes] = []
    for k, (header, theirs) in enumerate(zip(headers, codecs, strict=True)):
        try:
            frames.append(pack(header, {name: each[k] for name, each in rows.items()}, theirs))
        except UnwritableError:
            frames.append(b"")
    return frames


def weigh_stack(headers: Sequence[Header], stack: Message, codecs: Iterable[dict[str, Codec]]) -> list[Parcel]:
    """The same as parcels: what `unpack` makes of each frame, and how many bytes it has."""
    parcels: list[Parcel] = []
    for _, group in groupby(codecs, key=id):  # clients with the same codecs are weighed together
        (theirs, *others), at = list(group), len(parcels)
        many = 1 + len(others)
        _check_names(stack, theirs)
        weights = {name: codec.weigh(stack[name][at : at + many]) for name, codec in theirs.items()}
        around = HEAD.size + TENSOR.size * len(theirs) + CHECKSUM.size
        for k in range(many):
            refusal = ""
            lengths: list[Length] = [around]
            for name, codec in theirs.items():
                weight = weights[name][k]
                if isinstance(weight, UnwritableError):
                    lengths, refusal = [0], str(weight)
                    break
                if isinstance(weight, WireError):
                    weight, refusal = len(codec.encode(stack[name][at + k])), refusal or str(weight)
                lengths.append(weight)
            parcels.append(Parcel(stack, at + k, lengths, refusal))
    return parcels


def stack_messages(parts: Sequence[Message | Parcel]) -> Message:
    """Messages as one, K in front; what was posted together and is asked for together is not copied."""
    pieces: list[Message] = []
    for _, group in groupby(parts, key=lambda part: id(part.stack if isinstance(part, Parcel) else part)):
        first, *others = group
        if isinstance(first, Parcel):
            rows = [first.row, *(part.row for part in others if isinstance(part, Parcel))]
            beside = rows == list(range(rows[0], rows[0] + len(rows)))
            these = slice(rows[0], rows[0] + len(rows)) if beside else rows
            pieces.append({name: values[these] for name, values in first.stack.items()})
        else:
            pieces += [{name: value[None] for name, value in first.items()}] * (1 + len(others))
    return {name: torch.cat([piece[name] for piece in pieces]) for name in pieces[0]} if pieces[1:] else pieces[0]


def unpack(frame: bytes, expected: Header, codecs: dict[str, Codec], device: torch.device | str = "cpu") -> Message:
    """The message in a frame, or WireError if it is not the one expected."""
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
    """More than any frame by these codecs has; so much room, and no more, is made for one that is not there yet."""
    return TABLES + WIDEST * sum(codec.count for codec in codecs.values())


def _check_names(message: Message, codecs: dict[str, Codec]) -> None:
    if message.keys() != codecs.keys():
        raise WireError(f"a message of {sorted(message)} cannot travel by codecs for {sorted(codecs)}")


def check_head(frame: bytes, expected: Header) -> int:
    """How many tensors are in a frame; WireError if it is damaged, or not the one expected."""
    if not frame:
        raise WireError("nothing was sent")
    if len(frame) < HEAD.size + CHECKSUM.size:
        raise WireError(f"{len(frame)} bytes are too few for a frame")
    magic, version, round, client, fingerprint, method, count = HEAD.unpack_from(frame)
    if (magic, version) != (MAGIC, VERSION):
        raise WireError(f"a frame of {magic!r} version {version}, expected {MAGIC!r} version {VERSION}")
    if zlib.crc32(memoryview(frame)[: -CHECKSUM.size]) != CHECKSUM.unpack(frame[-CHECKSUM.size :])[0]:
        raise WireError("the checksum does not fit: the frame was altered or cut")
    got = Header(round, client, fingerprint, method.rstrip(b"\0").decode("ascii", "replace"))
    wanted = Header(expected.round, expected.client, expected.fingerprint, expected.method[:16])
    for field in fields(Header):
        given, want = getattr(got, field.name), getattr(wanted, field.name)
        if given != want:
            raise WireError(f"a frame of {field.name} {given!r}, expected {want!r}")
    return int(count)
