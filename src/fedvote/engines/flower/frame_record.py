"""A frame as a Flower record, the same in both directions."""

from __future__ import annotations

from flwr.app import Array, ArrayRecord, ConfigRecord, RecordDict

from fedvote.engines.flower.flower_internals import slice_array
from fedvote.errors import WireError

FRAME = "frame"
# Bytes of a chunk. Longer frames travel as an array, in chunks. Flower sends two objects at a time and gives each of
# them 30 seconds, so a link has to carry 2 MiB in that time: 0.6 Mbit/s.
CHUNK = 2**20


def frame_record(frame: bytes) -> ConfigRecord | ArrayRecord:
    """A record with one field, the frame."""
    if len(frame) <= CHUNK:
        return ConfigRecord({FRAME: frame})
    record = ArrayRecord({FRAME: Array("uint8", (len(frame),), "bytes", frame)})
    slice_array(record[FRAME], CHUNK)
    return record


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
