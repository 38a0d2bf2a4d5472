"""A frame as a Flower record, the same in both directions."""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedvote.errors import WireError

FRAME = "frame"
CHUNKED = 2**22  # bytes; longer frames travel as an array, in chunks, which is faster in Flower


def frame_record(frame: bytes) -> ConfigRecord | ArrayRecord:
    """A record with one field, the frame."""
    if len(frame) <= CHUNKED:
        return ConfigRecord({FRAME: frame})
    return ArrayRecord({FRAME: Array("uint8", (len(frame),), "bytes", frame)})


def read_frame(content: RecordDict, name: str) -> bytes:
    """The frame in the record of this name; WireError if the record holds anything else."""
    record = content[name]
    if not isinstance(record, ConfigRecord | ArrayRecord) or list(record) != [FRAME]:
        raise WireError(f"a {name} that holds {sorted(record)}, expected one {FRAME}")
    value = record[FRAME]
    frame = value.data if isinstance(value, Array) else value
    if not isinstance(frame, bytes):
        raise WireError(f"a {name} of {type(frame).__name__}, expected bytes")
    return frame
