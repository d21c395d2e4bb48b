"""Checkpoints of collectors and streams, each locked by one process."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from restow.errors import LakeFailed, RestowError
from restow.pipeline.files import lake_files
from restow.runtime.disk import SystemDisk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from restow.runtime.disk import Disk


_LOCK = "lock"
_SCHEME = re.compile("([A-Za-z][A-Za-z0-9+.-]+):/")


class CheckpointTaken(RestowError):
    """Another process uses the same checkpoint."""


def local_path(path: str) -> str | None:
    """Return the local path of an address, or None if it is on another file system."""
    scheme = _SCHEME.match(path)
    if scheme is None:
        return path
    return "/" + path[scheme.end() :].lstrip("/") if scheme[1].lower() == "file" else None


@contextmanager
def hold(checkpoint: str, disk: Disk | None = None) -> Iterator[None]:
    """Lock a local checkpoint for this block. On other file systems Spark detects a second writer, later."""
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


_DONE = "_SUCCESS"
"""The file that Spark writes last into a folder."""


class Kept:
    """The samples of a stream, by the number of their batch, in a folder of its checkpoint."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._spark = spark
        self._files = lake_files(spark)
        self._folder = f"{checkpoint}/samples"

    def has(self, batch: int) -> bool:
        return self._files.exists(f"{self._place(batch)}/{_DONE}")

    def take(self, sample: DataFrame, batch: int) -> DataFrame:
        """Return this batch's sample: the saved one, or else `sample`, which is evaluated and saved once."""
        if not self.has(batch):
            writing = sample.write.mode("overwrite").option(
                "mapreduce.fileoutputcommitter.marksuccessfuljobs", "true"
            )
            writing.parquet(self._place(batch))
        return self._spark.read.schema(sample.schema).parquet(self._place(batch))

    def forget_before(self, batch: int) -> None:
        """Remove samples before this batch. A stream starts a batch only when the one before is done."""
        for name in self._files.folders(self._folder):
            if name.isdecimal() and int(name) < batch:
                self._files.remove(f"{self._folder}/{name}")

    def _place(self, batch: int) -> str:
        return f"{self._folder}/{batch}"
