"""The disk of an embedded cluster: real files, in log dirs that may be full or fail.

Open files change their class while their log dir is in trouble, so that files of healthy ones pay nothing.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from restow.runtime.disk import SystemDisk, SystemFile

if TYPE_CHECKING:
    from restow.cluster.faults.handle import ClusterFault
    from restow.runtime.disk import Part, SystemLock


@dataclass(frozen=True, slots=True, eq=False)
class LogDirTrouble:
    """What is wrong with a log dir: a full one can still be read."""

    path: str
    is_full: bool
    fault: ClusterFault

    def meet(self, path: str, *, writes: bool) -> None:
        """Raise the error that the disk gives for a call on this path."""
        if writes or not self.is_full:
            self.fault.hit()
            code = errno.ENOSPC if self.is_full else errno.EIO
            raise OSError(code, os.strerror(code), path)


class FaultDisk(SystemDisk):
    """The operating system's files, in log dirs that may be in trouble."""

    def __init__(self) -> None:
        super().__init__()
        self._troubles: list[LogDirTrouble] = []
        self._sizes: dict[str, int] = {}
        """The size of each log dir: what it held, and what was free, at the first look."""

    def begin(self, trouble: LogDirTrouble) -> None:
        """Let calls on the log dir fail from now on."""
        self._troubles.append(trouble)
        self._change_open_files()

    def end(self, trouble: LogDirTrouble) -> None:
        """Let the log dir work again."""
        self._troubles.remove(trouble)
        self._change_open_files()

    def check(self, path: str, *, writes: bool) -> None:
        """Raise OSError if a call on this path fails."""
        for trouble in self._troubles:
            if path == trouble.path or path.startswith(f"{trouble.path}/"):
                trouble.meet(path, writes=writes)

    def admit(self, file: SystemFile) -> None:
        """Count a newly opened file, which learns of its log dir's trouble."""
        super().admit(file)
        if self._troubles or isinstance(file, TroubledFile):
            self._change(file)
            self.check(file.path, writes=False)

    def _change_open_files(self) -> None:
        for file in self._opened:
            self._change(file)

    def _change(self, file: SystemFile) -> None:
        in_trouble = any(file.path.startswith(f"{trouble.path}/") for trouble in self._troubles)
        file.__class__ = TroubledFile if in_trouble else SystemFile

    # The protocol of `restow.runtime.disk`

    def open(self, path: str, *, create: bool = False) -> SystemFile:
        self.check(path, writes=create)
        return super().open(path, create=create)

    def exists(self, path: str) -> bool:
        self.check(path, writes=False)
        return super().exists(path)

    def list(self, path: str) -> tuple[str, ...]:
        self.check(path, writes=False)
        return super().list(path)

    def make_directory(self, path: str) -> None:
        if self._troubles:
            self.check(path, writes=not super().exists(path))
        super().make_directory(path)

    def rename(self, path: str, new: str) -> None:
        self.check(path, writes=False)
        super().rename(path, new)

    def remove(self, path: str) -> None:
        self.check(path, writes=False)
        super().remove(path)

    def remove_tree(self, path: str) -> None:
        self.check(path, writes=False)
        super().remove_tree(path)

    def read_bytes(self, path: str) -> bytes:
        self.check(path, writes=False)
        return super().read_bytes(path)

    def write_atomically(self, path: str, data: bytes, *, durable: bool = True) -> None:
        self.check(path, writes=True)
        super().write_atomically(path, data, durable=durable)

    def space(self, path: str) -> tuple[int, int]:
        """Return a log dir's size and what is free, as if it were a disk of its own.

        All brokers share one machine with much else, which says nothing about how full a broker is.
        """
        self.check(path, writes=False)
        _, free = super().space(path)
        if path not in self._sizes:
            files = (each for each in Path(path).rglob("*") if each.is_file())
            self._sizes[path] = free + sum(each.stat().st_size for each in files)
        size = self._sizes[path]
        is_full = any(trouble.is_full and trouble.path == path for trouble in self._troubles)
        return size, 0 if is_full else min(free, size)

    def lock(self, path: str) -> SystemLock | None:
        self.check(path, writes=False)
        return super().lock(path)


class TroubledFile(SystemFile):
    """An open file in a log dir that is full or fails."""

    def append(self, *parts: Part) -> int:
        self._check(writes=True)
        return super().append(*parts)

    def read(self, position: int, size: int) -> bytes:
        self._check(writes=False)
        return super().read(position, size)

    def truncate(self, size: int) -> None:
        self._check(writes=False)
        super().truncate(size)

    def sync(self) -> None:
        self._check(writes=False)
        super().sync()

    def _check(self, *, writes: bool) -> None:
        if isinstance(self._disk, FaultDisk):
            self._disk.check(self.path, writes=writes)
