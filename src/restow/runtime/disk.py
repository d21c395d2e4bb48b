"""The disk as the cluster sees it, and the real one.

Everything here raises OSError when the disk fails; the caller decides what that means. Calls block: they end
in the page cache, which answers in microseconds.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import Protocol, TypeAlias

Part: TypeAlias = bytes | bytearray | memoryview
"""Bytes that can be written without a copy."""

_MOST_PARTS = 1024
_READ_BYTES = 64 * 1024
_MOST_OPEN_FILES = 512
_MOST_SMALL = 256 * 1024 * 1024
"""Files that are read whole are smaller than this."""


class File(Protocol):
    """A file that grows at its end and is truncated there."""

    @property
    def size(self) -> int:
        """Return the size in bytes."""

    def append(self, *parts: Part) -> int:
        """Append the parts in order and return their position."""

    def read(self, position: int, size: int) -> bytes:
        """Read bytes; fewer than requested only at the end of the file."""

    def truncate(self, size: int) -> None:
        """Keep only the first `size` bytes."""

    def sync(self) -> None:
        """Return when everything written would survive a power loss."""

    def close(self) -> None:
        """Release the file's resources. It must not be used afterwards."""


class Lock(Protocol):
    """An exclusive lock file, held until release or the end of the process."""

    def release(self) -> None:
        """Release the lock. The file stays."""


class Disk(Protocol):
    """Files and directories by their path."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open an existing file, or with `create` make it if missing."""

    def exists(self, path: str) -> bool:
        """Return whether the path exists."""

    def list(self, path: str) -> tuple[str, ...]:
        """Return the names in a directory, sorted."""

    def make_directory(self, path: str) -> None:
        """Make the directory and its missing parents; an existing one is no error."""

    def rename(self, path: str, new: str) -> None:
        """Rename a file or directory, replacing an existing file."""

    def remove(self, path: str) -> None:
        """Remove a file."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with its content."""

    def read_bytes(self, path: str) -> bytes:
        """Read a small file whole."""

    def write_atomically(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace a small file: readers see all of the old content or all of the new.

        With `durable` that also holds across a power loss, which costs milliseconds.
        """

    def sync_all(self) -> None:
        """Return when everything written to any file would survive a power loss.

        For many files this takes a fraction of the time of syncing them one by one.
        """

    def space(self, path: str) -> tuple[int, int]:
        """Return total and free bytes of the volume that holds the path."""

    def lock(self, path: str) -> Lock | None:
        """Lock the file, making it if missing. Return None if another process has it."""


class SystemDisk:
    """The operating system's files.

    Ten thousand partitions have more files than a process may hold open, so at most `most_open_files` are
    open; the others open again when used.
    """

    def __init__(self, most_open_files: int = _MOST_OPEN_FILES, *, private: bool = False) -> None:
        """With `private`, files and directories that it makes or opens for writing are private."""
        if most_open_files < 1:
            raise ValueError(f"most_open_files must be at least 1, not {most_open_files}")
        self.private = private
        self.file_mode = 0o600 if private else 0o644
        self._most_open_files = most_open_files
        self._opened: deque[SystemFile] = deque()

    def open(self, path: str, *, create: bool = False) -> SystemFile:
        return SystemFile(self, path, create=create)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)  # noqa: PTH110

    def list(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(os.listdir(path)))  # noqa: PTH208 (names, not a Path each)

    def make_directory(self, path: str) -> None:
        if self.private:
            _make_private(Path(path))
            return
        try:
            os.mkdir(path)  # noqa: PTH102
        except OSError:
            Path(path).mkdir(parents=True, exist_ok=True)

    def rename(self, path: str, new: str) -> None:
        Path(path).replace(new)

    def remove(self, path: str) -> None:
        Path(path).unlink()

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def read_bytes(self, path: str) -> bytes:
        # A pipe without a writer must not block us.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            _check_regular(descriptor, path)
            parts = []
            while part := os.read(descriptor, _READ_BYTES):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(descriptor)

    def write_atomically(self, path: str, data: bytes, *, durable: bool = True) -> None:
        # Creating a topic writes thousands of these, and path objects cost more than the calls.
        beside = f"{path}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        descriptor = os.open(beside, flags, self.file_mode)
        try:
            self.close_to_others(descriptor)
            left = memoryview(data)
            while left:
                left = left[os.write(descriptor, left) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(beside, path)  # noqa: PTH105
        if durable:
            _sync_directory(Path(path).parent)

    def sync_all(self) -> None:
        os.sync()

    def space(self, path: str) -> tuple[int, int]:
        usage = shutil.disk_usage(path)
        return usage.total, usage.free

    def lock(self, path: str) -> SystemLock | None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, self.file_mode)
        self.close_to_others(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        except OSError:
            os.close(descriptor)
            raise
        return SystemLock(descriptor)

    def admit(self, file: SystemFile) -> None:
        """Count a newly opened file; a file not used recently may have to close for it."""
        opened = self._opened
        while len(opened) >= self._most_open_files:
            eldest = opened.popleft()
            if eldest.used:
                eldest.used = False
                opened.append(eldest)
            else:
                eldest.rest()
        opened.append(file)

    def close_to_others(self, descriptor: int) -> None:
        """Make an existing file of ours private, if requested."""
        if self.private and os.fstat(descriptor).st_uid == os.geteuid():
            os.fchmod(descriptor, self.file_mode)

    def forget(self, file: SystemFile) -> None:
        """Forget a file that was closed for good."""
        if file in self._opened:
            self._opened.remove(file)


class SystemFile:
    """One file, opened at its first use and again after a rest."""

    def __init__(self, disk: SystemDisk, path: str, *, create: bool) -> None:
        self._disk = disk
        self.path = path
        self._descriptor = -1
        self.used = False
        """Whether it was used since the disk last looked for a file to close."""
        self._wake(create=create)
        self._size = os.fstat(self._descriptor).st_size

    @property
    def size(self) -> int:
        return self._size

    def append(self, *parts: Part) -> int:
        if self._descriptor < 0:
            self._wake()
        self.used = True
        began = self._size
        wanted = sum(map(len, parts))
        if len(parts) <= _MOST_PARTS:
            written = os.pwritev(self._descriptor, parts, began)
            if written == wanted:
                self._size = began + wanted
                return began
        # Rare: too many parts for one call, or a partial write. Start again from the first byte.
        left = memoryview(b"".join(parts))
        position = began
        while left:
            written = os.pwrite(self._descriptor, left, position)
            position += written
            left = left[written:]
        self._size = position
        return began

    def read(self, position: int, size: int) -> bytes:
        if self._descriptor < 0:
            self._wake()
        self.used = True
        return os.pread(self._descriptor, size, position)

    def truncate(self, size: int) -> None:
        if self._descriptor < 0:
            self._wake()
        os.ftruncate(self._descriptor, size)
        self._size = size

    def sync(self) -> None:
        if self._descriptor < 0:
            self._wake()
        os.fdatasync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            self._disk.forget(self)
            self.rest()

    def rest(self) -> None:
        """Close the descriptor until the file is used again."""
        descriptor, self._descriptor = self._descriptor, -1
        os.close(descriptor)

    def _wake(self, *, create: bool = False) -> None:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self._descriptor = os.open(self.path, flags, self._disk.file_mode)
        self._disk.close_to_others(self._descriptor)
        self._disk.admit(self)


class SystemLock:
    """An flock, which the kernel releases when the process ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _check_regular(descriptor: int, path: str) -> None:
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is not an ordinary file", path)
    if found.st_size > _MOST_SMALL:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)


def _make_private(path: Path) -> None:
    """Make a directory that only its owner may enter; an existing one must be ours."""
    if not path.parent.exists():
        _make_private(path.parent)
    above = path.parent.stat().st_mode
    if above & stat.S_IWOTH and not above & stat.S_ISVTX:
        raise PermissionError(errno.EPERM, f"anybody may change {path.parent}", str(path))
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    if found.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, f"it belongs to another user (uid {found.st_uid})", str(path))
    if stat.S_IMODE(found.st_mode) != 0o700:
        path.chmod(0o700)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
