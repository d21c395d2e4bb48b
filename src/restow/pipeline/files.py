"""Files of a lake: through Hadoop's interface in the JVM, or from a Python worker of a Connect server.

A Connect server has no call for files. There, each operation is a small job: a worker does it with pyarrow,
on the file system that the server's executors see.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from restow.pipeline.connect import is_connect
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import SparkSession

_ENDS = ".parquet"
_HIDDEN = ("_", ".")


class LakeFiles(Protocol):
    """Lists, moves and removes files by address or path."""

    def exists(self, path: str) -> bool: ...

    def folders(self, path: str) -> list[str]:
        """Return the sorted names of the visible folders in a folder."""

    def within(self, path: str) -> list[str]:
        """Return every Parquet file under a folder, at any depth, as its path below the folder."""

    def move(self, source: str, target: str) -> None:
        """Move a file or folder to an unused name."""

    def move_within(self, source: str, target: str) -> int:
        """Move every Parquet file under a folder to the same place under another. Return how many."""

    def remove(self, *paths: str) -> None:
        """Remove files, or folders with their content, if they exist."""

    def read_text(self, path: str) -> str | None:
        """Return what a file says, or None if there is none."""

    def write_text(self, path: str, text: str) -> None:
        """Write a file, or write it anew."""

    def remove_old(self, path: str, older_than_s: int) -> None:
        """Remove everything in a folder that has not changed for this long."""


def path_for(spark: SparkSession, path: str) -> str:
    """Return a path that a Connect server, which runs in another folder, understands as we do."""
    return path if is_address(path) or not is_connect(spark) else str(Path(path).absolute())


def is_address(path: str) -> bool:
    """Return whether this names a file system, too, instead of being a path of this machine."""
    return "://" in path or path.startswith("file:")


def lake_files(spark: SparkSession) -> LakeFiles:
    """Return the files that this session's lakes consist of."""
    return WorkerFiles(spark) if is_connect(spark) else HadoopFiles(spark)


class HadoopFiles:
    """Any file system that Spark reads, by Hadoop's classes in the driver's JVM."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 (pyspark has no other way to a file system)
        self._settings: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def exists(self, path: str) -> bool:
        where, system = self._at(path)
        return bool(system.exists(where))

    def folders(self, path: str) -> list[str]:
        where, system = self._at(path)
        if not system.exists(where):
            return []
        found = (each.getPath().getName() for each in system.listStatus(where) if each.isDirectory())
        return sorted(name for name in found if not name.startswith(_HIDDEN))

    def within(self, path: str) -> list[str]:
        where, system = self._at(path)
        if system.getScheme() == "file":  # each call to the JVM would cost more than all of this
            here = Path(str(where.toUri().getPath()))
            return sorted(str(each.relative_to(here)) for each in here.rglob(f"*{_ENDS}"))
        root = str(system.makeQualified(where).toString()).rstrip("/") + "/"
        found, listed = [], system.listFiles(where, True)
        while listed.hasNext():
            each = listed.next().getPath()
            if each.getName().endswith(_ENDS):
                found.append(str(each.toString()).removeprefix(root))
        return found

    def move(self, source: str, target: str) -> None:
        before, system = self._at(source)
        after, _ = self._at(target)
        system.mkdirs(after.getParent())
        if not system.rename(before, after):
            raise OSError(f"{source} could not be moved to {target}")

    def move_within(self, source: str, target: str) -> int:
        files = self.within(source)
        for each in files:
            self.move(f"{source}/{each}", f"{target}/{each}")
        return len(files)

    def remove(self, *paths: str) -> None:
        for path in paths:
            where, system = self._at(path)
            system.delete(where, True)

    def read_text(self, path: str) -> str | None:
        where, system = self._at(path)
        if not system.exists(where):
            return None
        stream = system.open(where)
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        where, system = self._at(path)
        stream = system.create(where, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def remove_old(self, path: str, older_than_s: int) -> None:
        where, system = self._at(path)
        if not system.exists(where):
            return
        now_ms = self._jvm.System.currentTimeMillis()
        for each in system.listStatus(where):
            if each.getModificationTime() < now_ms - 1000 * older_than_s:
                system.delete(each.getPath(), True)

    def _at(self, path: str) -> tuple[Any, Any]:
        where = self._jvm.org.apache.hadoop.fs.Path(path)
        return where, where.getFileSystem(self._settings)


class WorkerFiles:
    """The file systems that pyarrow knows, from a worker of the server."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def exists(self, path: str) -> bool:
        return bool(self._ask(partial(_exists, path)))

    def folders(self, path: str) -> list[str]:
        return sorted(name for name in self._ask(partial(_folders, path)) if not name.startswith(_HIDDEN))

    def within(self, path: str) -> list[str]:
        return self._ask(partial(_within, path))

    def move(self, source: str, target: str) -> None:
        self._ask(partial(_move, source, target))

    def move_within(self, source: str, target: str) -> int:
        return len(self._ask(partial(_move_within, source, target)))

    def remove(self, *paths: str) -> None:
        if paths:
            self._ask(partial(_remove, paths))

    def read_text(self, path: str) -> str | None:
        found = self._ask(partial(_read_text, path))
        return found[0] if found else None

    def write_text(self, path: str, text: str) -> None:
        self._ask(partial(_write_text, path, text))

    def remove_old(self, path: str, older_than_s: int) -> None:
        self._ask(partial(_remove_old, path, older_than_s))

    def _ask(self, work: Callable[[], Iterable[str]]) -> list[str]:
        """Run this in a worker and return the names that it yields."""

        def answer(batches: Iterable[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for _ in batches:
                yield pa.RecordBatch.from_pydict({"name": pa.array(list(work()), pa.string())})

        rows = self._spark.range(0, 1, 1, 1).mapInArrow(answer, "name string").collect()
        return [row.name for row in rows]


def _at(path: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path there."""
    from pyarrow.fs import FileSystem, LocalFileSystem

    if path.startswith("file:"):
        return LocalFileSystem(), "/" + path.removeprefix("file:").lstrip("/")
    scheme, separator, rest = path.partition("://")
    if not separator:
        return LocalFileSystem(), path
    host, _, key = rest.partition("/")
    system, base = FileSystem.from_uri(f"{'s3' if scheme == 's3a' else scheme}://{host}/")
    return system, f"{base.rstrip('/')}/{key}"


def _infos(system: Any, where: str, *, recursive: bool = False) -> list[Any]:
    from pyarrow.fs import FileSelector

    found: list[Any] = system.get_file_info(FileSelector(where, allow_not_found=True, recursive=recursive))
    return found


def _exists(path: str) -> list[str]:
    from pyarrow.fs import FileType

    system, where = _at(path)
    return [where] if system.get_file_info(where).type != FileType.NotFound else []


def _folders(path: str) -> list[str]:
    system, where = _at(path)
    return [each.base_name for each in _infos(system, where) if not each.is_file]


def _within(path: str) -> list[str]:
    system, where = _at(path)
    root = where.rstrip("/") + "/"
    found = (each.path for each in _infos(system, where, recursive=True) if each.is_file)
    return [each.removeprefix(root) for each in found if each.endswith(_ENDS)]


def _move(source: str, target: str) -> list[str]:
    system, before = _at(source)
    _, after = _at(target)
    system.create_dir(after.rpartition("/")[0], recursive=True)
    system.move(before, after)
    return []


def _move_within(source: str, target: str) -> list[str]:
    files = _within(source)
    for each in files:
        _move(f"{source}/{each}", f"{target}/{each}")
    return files


def _remove(paths: Iterable[str]) -> list[str]:
    from pyarrow.fs import FileType

    for path in paths:
        system, where = _at(path)
        kind = system.get_file_info(where).type
        if kind == FileType.Directory:
            system.delete_dir(where)
        elif kind == FileType.File:
            system.delete_file(where)
    return []


def _read_text(path: str) -> list[str]:
    system, where = _at(path)
    if not _exists(path):
        return []
    with system.open_input_stream(where) as stream:
        return [stream.read().decode()]


def _write_text(path: str, text: str) -> list[str]:
    system, where = _at(path)
    system.create_dir(where.rpartition("/")[0], recursive=True)
    with system.open_output_stream(where) as stream:
        stream.write(text.encode())
    return []


def _remove_old(path: str, older_than_s: int) -> list[str]:
    system, where = _at(path)
    now_s = SystemClock().now_ms() / 1000
    old = [each.path for each in _infos(system, where) if each.mtime.timestamp() < now_s - older_than_s]
    return _remove(f"{path}/{each.rpartition('/')[2]}" for each in old)
