"""A node's disk in memory: synced data survives a power loss, other data may be torn.

    disk.kill()         the process died: the kernel still writes all of it
    disk.lose_power()   the machine died: synced bytes stay, and a random part of the rest; the files that
                        were made last may be missing, as on a file system with a journal

Log dirs are separate volumes, which can be full, slow, fail or vanish. Disk calls block a broker, so a slow
volume halts its node for a while after each call.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from restow.runtime.chance import Chance
    from restow.runtime.disk import Part

_TOTAL_BYTES = 1 << 40
_WRITTEN_BACK_ONE_IN = 3
_TEAR_ONE_IN = 4
_GARBAGE_BYTES = 64


class _Inode:
    """A file's bytes, and how many of them are synced."""

    __slots__ = ("data", "made", "old", "synced")

    def __init__(self, made: int, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = 0
        self.made = made
        """The number of its directory entry: how many files were made before."""
        self.old: bytes | None = None
        """The previous content of a file that was replaced without a sync."""

    def sync(self) -> None:
        self.synced, self.old = len(self.data), None


@dataclass(slots=True, kw_only=True)
class Volume:
    """The file system that holds a directory."""

    total_bytes: int = _TOTAL_BYTES
    error: int = 0
    """The errno with which every call on it fails: EIO on a broken disk, ENOENT without a mount; or 0."""
    slow_s: float = 0.0
    """How long every call on it takes."""

    def mend(self) -> None:
        """End all faults of the volume. Its files are as they were."""
        self.total_bytes, self.error, self.slow_s = _TOTAL_BYTES, 0, 0.0


class SimDisk:
    """Files and directories by their path, all of one node."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self._files: dict[str, _Inode] = {}
        self._folders: dict[str, set[str]] = {"/": set()}
        self._locks: set[str] = set()
        self._volumes: dict[str, Volume] = {"/": Volume()}
        self._mounts: dict[str, str] = {}
        """The mounts of paths, once looked up."""
        self._life = 0
        self._made = self._journaled = 0
        """How many files were made, and how many of their directory entries are on disk."""
        self.is_looked_at = False
        """Whether a checker reads, and not the broker: then no fault occurs."""
        self.changes = 0
        """How many calls have changed a file's bytes."""
        self.took: Callable[[float], object] = lambda _: None
        """Called after a call that took so many seconds."""

    # Faults

    def volume(self, path: str) -> Volume:
        """Return the volume mounted at this directory; make it if missing."""
        mount = _tidy(path)
        if mount not in self._volumes:
            self._volumes[mount] = Volume()
            self._mounts.clear()
        return self._volumes[mount]

    def fill(self, path: str, room_bytes: int) -> None:
        """Leave only so much room on the volume mounted at this directory."""
        total, free = self.space(path)
        self.volume(path).total_bytes = total - free + room_bytes

    def kill(self) -> None:
        """End the process that uses this disk: its handles are void, and written data stays."""
        self._life += 1
        self._locks.clear()

    def lose_power(self) -> None:
        """Keep synced data and a random part of the rest, torn at the end.

        Some files are kept whole, because the kernel writes back each of them when it likes. So a checkpoint
        may be newer than the log that it is about.
        """
        self.kill()
        made = self._journaled + self._chance.randrange(self._made - self._journaled + 1)
        for path in sorted(self._files):
            inode = self._files[path]
            if inode.made >= made:
                del self._files[path]
                self._unlist(path)
                continue
            if inode.old is not None and self._chance.randrange(2):
                inode.data = bytearray(inode.old)
            unsynced = len(inode.data) - inode.synced
            if unsynced > 0 and self._chance.randrange(_WRITTEN_BACK_ONE_IN):
                del inode.data[inode.synced + self._chance.randrange(unsynced + 1) :]
                if not self._chance.randrange(_TEAR_ONE_IN):
                    garbage = self._chance.randrange(min(_GARBAGE_BYTES, unsynced) + 1)
                    inode.data += bytes(garbage)
            inode.sync()
        self._journaled = self._made

    # The protocol of `restow.runtime.disk`

    def open(self, path: str, *, create: bool = False) -> SimFile:
        path = self._usable(path)
        inode = self._files.get(path)
        if inode is None:
            if not create:
                raise _no_such(path)
            inode = self._add(path, _Inode(self._made))
            self._made += 1
        return SimFile(self, path, inode, self._life, self._volume_of(path)[1])

    def exists(self, path: str) -> bool:
        path = self._usable(path)
        return path in self._files or path in self._folders

    def list(self, path: str) -> tuple[str, ...]:
        path = self._existing(path, self._folders)
        return tuple(sorted(self._folders[path]))

    def make_directory(self, path: str) -> None:
        path = self._usable(path)
        if path in self._files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        missing = []
        while path not in self._folders:
            missing.append(path)
            path = _split(path)[0]
        for each in reversed(missing):
            self._folders[each] = set()
            self._list(each)

    def rename(self, path: str, new: str) -> None:
        path, new = self._usable(path), self._usable(new)
        if path in self._files:
            inode = self._files.pop(path)
            self._unlist(path)
            self._add(new, inode)
            return
        if path not in self._folders:
            raise _no_such(path)
        if self._folders.get(new):
            raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), new)
        self._unlist(path)
        for old in [each for each in self._folders if _within(each, path)]:
            self._folders[new + old[len(path) :]] = self._folders.pop(old)
        for old in [each for each in self._files if _within(each, path)]:
            self._files[new + old[len(path) :]] = self._files.pop(old)
        self._list(new)

    def remove(self, path: str) -> None:
        path = self._existing(path, self._files)
        del self._files[path]
        self._unlist(path)

    def remove_tree(self, path: str) -> None:
        path = self._existing(path, self._folders)
        for each in [each for each in self._files if _within(each, path)]:
            del self._files[each]
        for each in [each for each in self._folders if _within(each, path)]:
            del self._folders[each]
        self._unlist(path)

    def read_bytes(self, path: str) -> bytes:
        path = self._existing(path, self._files)
        return bytes(self._files[path].data)

    def write_atomically(self, path: str, data: bytes, *, durable: bool = True) -> None:
        path = self._usable(path)
        self.make_room(path, len(data), self._volume_of(path)[1])
        old = self._files.get(path)
        inode = self._add(path, _Inode(self._made if old is None else old.made, data))
        self._made += old is None
        self.changes += 1
        if durable:
            self.sync(inode)
        elif old is not None:
            inode.old = bytes(old.data[: old.synced])

    def sync_all(self) -> None:
        for inode in self._files.values():
            self.sync(inode)

    def space(self, path: str) -> tuple[int, int]:
        path = self._usable(path)
        mount, volume = self._volume_of(path)
        folder = mount.rstrip("/") + "/"
        used = sum(len(inode.data) for each, inode in self._files.items() if each.startswith(folder))
        return volume.total_bytes, max(0, volume.total_bytes - used)

    def lock(self, path: str) -> _SimLock | None:
        path = self._usable(path)
        if path in self._locks:
            return None
        self.open(path, create=True)
        self._locks.add(path)
        return _SimLock(self._locks, path)

    # For the files

    def check(self, path: str, life: int, volume: Volume) -> None:
        """Raise the error of a call on this path, if it would fail."""
        if life != self._life:
            raise OSError(errno.EBADF, "the process that opened it is gone", path)
        if (volume.error or volume.slow_s) and not self.is_looked_at:
            if volume.error:
                raise OSError(volume.error, os.strerror(volume.error), path)
            self.took(volume.slow_s)

    def sync(self, inode: _Inode) -> None:
        """Write the file's bytes, and with the journal all directory entries made so far."""
        inode.sync()
        self._journaled = self._made

    def make_room(self, path: str, more: int, volume: Volume) -> None:
        """Raise ENOSPC if the volume cannot hold that many more bytes."""
        if volume.total_bytes < _TOTAL_BYTES and self.space(path)[1] < more:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _usable(self, path: str) -> str:
        path = _tidy(path)
        self.check(path, self._life, self._volume_of(path)[1])
        return path

    def _existing(self, path: str, among: Container[str]) -> str:
        path = self._usable(path)
        if path not in among:
            raise _no_such(path)
        return path

    def _volume_of(self, path: str) -> tuple[str, Volume]:
        mount = self._mounts.get(path)
        if mount is None:
            mount = max((each for each in self._volumes if _within(path, each)), key=len)
            self._mounts[path] = mount
        return mount, self._volumes[mount]

    def _add(self, path: str, inode: _Inode) -> _Inode:
        if _split(path)[0] not in self._folders:
            raise _no_such(path)
        self._files[path] = inode
        self._list(path)
        return inode

    def _list(self, path: str) -> None:
        above, name = _split(path)
        self._folders[above].add(name)

    def _unlist(self, path: str) -> None:
        above, name = _split(path)
        self._folders[above].discard(name)


class SimFile:
    """A handle, void once its process is gone."""

    __slots__ = ("_disk", "_inode", "_life", "_path", "_volume")

    def __init__(self, disk: SimDisk, path: str, inode: _Inode, life: int, volume: Volume) -> None:
        self._disk, self._path, self._inode, self._life, self._volume = disk, path, inode, life, volume

    @property
    def size(self) -> int:
        return len(self._inode.data)

    def append(self, *parts: Part) -> int:
        self._disk.check(self._path, self._life, self._volume)
        self._disk.make_room(self._path, sum(map(len, parts)), self._volume)
        self._disk.changes += 1
        began = len(self._inode.data)
        for part in parts:
            self._inode.data += part
        return began

    def read(self, position: int, size: int) -> bytes:
        self._disk.check(self._path, self._life, self._volume)
        return bytes(memoryview(self._inode.data)[position : position + size])

    def truncate(self, size: int) -> None:
        self._disk.check(self._path, self._life, self._volume)
        self._disk.changes += 1
        data = self._inode.data
        if size < len(data):
            del data[size:]
        else:
            data += bytes(size - len(data))
        self._inode.synced = min(self._inode.synced, size)

    def sync(self) -> None:
        self._disk.check(self._path, self._life, self._volume)
        self._disk.sync(self._inode)

    def close(self) -> None:
        """Do nothing, because there are no resources."""


class _SimLock:
    def __init__(self, locks: set[str], path: str) -> None:
        self._locks, self._path = locks, path

    def release(self) -> None:
        self._locks.discard(self._path)


@lru_cache(maxsize=4096)
def _tidy(path: str) -> str:
    return os.path.normpath("/" + path.lstrip("/"))


def _split(path: str) -> tuple[str, str]:
    above, _, name = path.rpartition("/")
    return above or "/", name


def _within(path: str, folder: str) -> bool:
    return path == folder or folder == "/" or path.startswith(f"{folder}/")


def _no_such(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
