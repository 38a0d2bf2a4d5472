"""The lock of a run folder: one run at a time, in this process and in others."""

from __future__ import annotations

import errno
from pathlib import Path

from filelock import FileLock, Timeout

from fedvote.errors import ConfigError

LOCK = ".lock"  # an empty file, locked while a run is in progress, and never deleted
NO_LOCKS = (errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK)
_locked: dict[Path, FileLock] = {}  # folder -> lock, of the runs in this process


def lock(path: Path) -> None:
    """Lock a folder that exists; ConfigError if it is locked."""
    where = path.resolve()
    busy = ConfigError(
        f"{path} is the folder of a run in progress: wait for its end, stop it, or choose another folder with --out"
    )
    if where in _locked:
        raise busy
    # no soft lock: it would outlive a killed process. Not thread-local: any thread may release it.
    held = FileLock(where / LOCK, timeout=0, thread_local=False, fallback_to_soft=False)
    try:
        held.acquire()
    except Timeout:
        raise busy from None
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise ConfigError(
                f"{where / LOCK} cannot be opened ({error.strerror}), so another run might use the folder: make it "
                "writable, or choose another folder with --out"
            ) from error
        # the file system has no locks: users must take care themselves
    _locked[where] = held


def unlock(path: Path) -> None:
    """Unlock the folder, if this process has locked it."""
    if (held := _locked.pop(path.resolve(), None)) is not None:
        held.release()
