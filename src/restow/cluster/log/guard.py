"""A log dir that goes offline as a whole at its disk's first failure.

A failed disk cannot be trusted with the next write. So after the first OSError every call raises DiskFailure,
and the directory's owner is called back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ParamSpec, TypeVar

from restow.cluster.log.errors import DiskFailure

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.disk import Disk, File, Lock, Part

P = ParamSpec("P")
T = TypeVar("T")


class GuardedDisk:
    """The disk of one log dir."""

    def __init__(self, disk: Disk, directory: str, on_failure: Callable[[DiskFailure], None]) -> None:
        self.failure: DiskFailure | None = None
        """Why the directory is offline, or None."""
        self.late: dict[str, Callable[[], None]] = {}
        """Directories to be made later, with the work to do then."""
        self._disk = disk
        self._directory = directory
        self._on_failure = on_failure

    def fail(self, cause: str) -> DiskFailure:
        """Take the directory offline. Only the first call counts."""
        if self.failure is None:
            self.failure = DiskFailure(self._directory, cause)
            self._on_failure(self.failure)
        return self.failure

    def call(self, function: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
        """Call a disk function, unless the disk has failed or fails now."""
        if self.failure is not None:
            raise self.failure
        try:
            return function(*arguments, **options)
        except OSError as error:
            raise self.fail(str(error)) from error

    def make_late(self, path: str) -> None:
        """Make a postponed directory now."""
        if (then := self.late.pop(path, None)) is not None:
            self.make_directory(path)
            then()

    def open(self, path: str, *, create: bool = False) -> File:
        if create and self.late:
            self.make_late(path.rpartition("/")[0])
        return GuardedFile(self, self.call(self._disk.open, path, create=create))

    def exists(self, path: str) -> bool:
        return self.call(self._disk.exists, path)

    def list(self, path: str) -> tuple[str, ...]:
        return self.call(self._disk.list, path)

    def make_directory(self, path: str) -> None:
        self.call(self._disk.make_directory, path)

    def rename(self, path: str, new: str) -> None:
        self.call(self._disk.rename, path, new)

    def remove(self, path: str) -> None:
        self.call(self._disk.remove, path)

    def remove_tree(self, path: str) -> None:
        self.call(self._disk.remove_tree, path)

    def read_bytes(self, path: str) -> bytes:
        return self.call(self._disk.read_bytes, path)

    def write_atomically(self, path: str, data: bytes, *, durable: bool = True) -> None:
        if self.late:
            self.make_late(path.rpartition("/")[0])
        self.call(self._disk.write_atomically, path, data, durable=durable)

    def sync_all(self) -> None:
        self.call(self._disk.sync_all)

    def space(self, path: str) -> tuple[int, int]:
        return self.call(self._disk.space, path)

    def lock(self, path: str) -> Lock | None:
        return self.call(self._disk.lock, path)


class GuardedFile:
    """A file in a guarded directory. The two hot calls take a short path."""

    __slots__ = ("_file", "_guard")

    def __init__(self, guard: GuardedDisk, file: File) -> None:
        self._guard = guard
        self._file = file

    @property
    def size(self) -> int:
        return self._file.size

    def append(self, *parts: Part) -> int:
        if self._guard.failure is not None:
            raise self._guard.failure
        try:
            return self._file.append(*parts)
        except OSError as error:
            raise self._guard.fail(str(error)) from error

    def read(self, position: int, size: int) -> bytes:
        if self._guard.failure is not None:
            raise self._guard.failure
        try:
            return self._file.read(position, size)
        except OSError as error:
            raise self._guard.fail(str(error)) from error

    def truncate(self, size: int) -> None:
        self._guard.call(self._file.truncate, size)

    def sync(self) -> None:
        self._guard.call(self._file.sync)

    def close(self) -> None:
        """Close the file, also on a failed disk, to release the descriptor."""
        try:
            self._file.close()
        except OSError as error:
            self._guard.fail(str(error))
