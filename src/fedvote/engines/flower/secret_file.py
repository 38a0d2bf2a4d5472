"""The secret of a run: 32 random bytes in the run folder, which its owner alone can read.

Each client's secret follows from it (randomness/key.py), so a restarted server gives every client the same one again.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from fedvote.errors import ConfigError
from fedvote.randomness import SECRET_BYTES
from fedvote.system.atomic_file import atomic_file

FILE = "run-secret"


def keep_secret(folder: Path, given: bytes | None = None) -> bytes:
    """The secret in a run folder. A new one is `given`, or drawn by the operating system."""
    path = folder / FILE
    if not path.is_file():
        with atomic_file(path, secret=True) as part:
            part.write_text((given or secrets.token_bytes(SECRET_BYTES)).hex() + "\n")
    try:
        secret = bytes.fromhex(path.read_text())
    except ValueError:  # no digits, or no text at all
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise ConfigError(
            f"{path} does not hold {SECRET_BYTES} bytes as hexadecimal digits: restore it, or delete it; clients then "
            "get new secrets, and the run goes on with other random numbers"
        )
    return secret
