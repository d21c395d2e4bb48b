"""Checkpoints: where a collector or a stream notes how far it is, and who may go on from one."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from restow.errors import LakeFailed, RestowError
from restow.runtime.disk import SystemDisk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.runtime.disk import Disk

_LOCK = "lock"
_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]+):/")


class CheckpointTaken(RestowError):
    """Another process goes on from the same checkpoint."""


def local_path(path: str) -> str | None:
    """Return the path on this machine that an address stands for, or None if it is elsewhere."""
    scheme = _SCHEME.match(path)
    if scheme is None:
        return path
    return "/" + path[scheme.end() :].lstrip("/") if scheme[1].lower() == "file" else None


@contextmanager
def hold(checkpoint: str, disk: Disk | None = None) -> Iterator[None]:
    """Keep others off a local checkpoint; elsewhere Spark itself notices a second one, if later."""
    path = local_path(checkpoint)
    if path is None:
        yield
        return
    disk = disk or SystemDisk()
    try:
        disk.make_directory(path)
        lock = disk.lock(f"{path}/{_LOCK}")
    except OSError as error:
        raise LakeFailed(f"the checkpoint {checkpoint} cannot be used: {error.strerror}") from error
    if lock is None:
        raise CheckpointTaken(
            f"another process goes on from {checkpoint}: stop that one, or give this one its own --checkpoint"
        )
    try:
        yield
    finally:
        lock.release()
