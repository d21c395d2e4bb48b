"""One run per cluster: a lock by cluster id, which says who holds it.

The kernel takes the lock back from a process that is gone, however it went; the note beside it is only read
while the lock is held.
"""

from __future__ import annotations

import getpass
import json
import os
import platform
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.runtime.disk import Disk

_LOCK, _NOTE = "lock", "holder.json"
_MOST = 10**14
"""Beyond any process id, and any time that can be shown."""


class ClusterLocked(RestowError):
    """Somebody else is carrying out something on this cluster."""


class BadStateFolder(RestowError):
    """The folder for journals is somebody else's, open to anybody, or broken. Nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who carries out a run."""

    pid: int
    host: str
    user: str
    run: str
    since_ms: int | None = None

    @classmethod
    def this_process(cls, run: str, since_ms: int | None = None) -> Holder:
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = str(os.getuid())
        return cls(pid=os.getpid(), host=platform.node(), user=user, run=run, since_ms=since_ms)


@contextmanager
def cluster_lock(disk: Disk, folder: str, holder: Holder) -> Iterator[None]:
    """Hold the lock of the cluster whose runs are in this folder, or say who does."""
    try:
        disk.make_directory(folder.rpartition("/")[0] or folder)
        disk.make_directory(folder)
        lock = disk.lock(f"{folder}/{_LOCK}")
        if lock is not None:
            note = json.dumps(asdict(holder)).encode()
            disk.write_atomically(f"{folder}/{_NOTE}", note, durable=False)
    except OSError as error:
        raise BadStateFolder(
            f"{error.filename or folder} cannot be used for journals: {error.strerror or error}. Put it in "
            "order, or choose another folder with --journal"
        ) from error
    if lock is None:
        raise ClusterLocked(_who(disk, folder))
    try:
        yield
    finally:
        lock.release()


def holder_of(disk: Disk, folder: str) -> Holder | None:
    """Who holds it at this moment, if anybody does and says so."""
    if not disk.exists(f"{folder}/{_LOCK}"):
        return None
    try:
        lock = disk.lock(f"{folder}/{_LOCK}")
    except OSError:
        return None
    if lock is not None:
        lock.release()
        return None
    return _note(disk, folder)


def _note(disk: Disk, folder: str) -> Holder | None:
    try:
        return holder_from(disk.read_bytes(f"{folder}/{_NOTE}"))
    except OSError:
        return None


def holder_from(note: bytes) -> Holder | None:
    """Read what a holder wrote of itself; None if it is anything else."""
    try:
        said = json.loads(note)
        texts = [said[key] for key in ("host", "user", "run")]
        pid, since_ms = said["pid"], said.get("since_ms")
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    numbers = [pid] if since_ms is None else [pid, since_ms]
    if not all(type(each) is int and 0 <= each < _MOST for each in numbers):
        return None
    if not all(isinstance(each, str) for each in texts):
        return None
    host, user, run = texts
    return Holder(pid=pid, host=host, user=user, run=run, since_ms=since_ms)


def _who(disk: Disk, folder: str) -> str:
    holder = _note(disk, folder)
    if holder is None:
        return f"another run holds {folder}/{_LOCK}: wait until it has ended"
    return (
        f"{holder.user} is at it: run {holder.run}, process {holder.pid} on {holder.host}. Look at it with "
        f"`restow watch`, change it with `restow control`, or wait until it has ended"
    )
