"""Files on any file system that Spark reads, through Hadoop's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


class LakeFiles:
    """Lists, moves and removes files by address or path."""

    def __init__(self, spark: SparkSession) -> None:
        self._jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 (pyspark has no other way to a file system)
        self._settings: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def plain(self, path: str) -> str:
        """Return the path with its scheme, as listings have it."""
        where, system = self._at(path)
        return str(system.makeQualified(where).toString())

    def exists(self, path: str) -> bool:
        where, system = self._at(path)
        return bool(system.exists(where))

    def folders(self, path: str) -> list[str]:
        """Return the sorted names of the visible folders in a folder."""
        where, system = self._at(path)
        if not system.exists(where):
            return []
        found = (each.getPath().getName() for each in system.listStatus(where) if each.isDirectory())
        return sorted(name for name in found if not name.startswith(("_", ".")))

    def within(self, path: str) -> Iterator[str]:
        """Yield every Parquet file under a folder, at any depth."""
        where, system = self._at(path)
        found = system.listFiles(where, True)
        while found.hasNext():
            each = found.next().getPath()
            if each.getName().endswith(".parquet"):
                yield str(each.toString())

    def move(self, source: str, target: str) -> None:
        """Move a file or folder to an unused name."""
        before, system = self._at(source)
        after, _ = self._at(target)
        system.mkdirs(after.getParent())
        if not system.rename(before, after):
            raise OSError(f"{source} could not be moved to {target}")

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with its content, if it exists."""
        where, system = self._at(path)
        system.delete(where, True)

    def remove_old(self, path: str, older_than_s: int) -> None:
        """Remove everything in a folder that has not changed for this long."""
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
