"""Samples as they were taken, kept until they are where they belong.

A cluster cannot be asked again how it was. So a batch of a stream is written down before anything is done
with it, and one that runs again after a crash finds the sample that was taken, to the last digit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.pipeline.files import LakeFiles

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_DONE = "_SUCCESS"
"""What Spark writes into a folder last of all."""


class Kept:
    """The samples of a stream, by the number of their batch, in a folder of its checkpoint."""

    def __init__(self, spark: SparkSession, checkpoint: str) -> None:
        self._spark = spark
        self._files = LakeFiles(spark)
        self._folder = f"{checkpoint}/samples"

    def has(self, batch: int) -> bool:
        return self._files.exists(f"{self._place(batch)}/{_DONE}")

    def take(self, sample: DataFrame, batch: int) -> DataFrame:
        """This batch's sample: the one that is kept, or else this one, which is evaluated once."""
        if not self.has(batch):
            writing = sample.write.mode("overwrite").option(
                "mapreduce.fileoutputcommitter.marksuccessfuljobs", "true"
            )
            writing.parquet(self._place(batch))
        return self._spark.read.schema(sample.schema).parquet(self._place(batch))

    def forget_before(self, batch: int) -> None:
        """A stream begins a batch only when it knows the one before to be done."""
        for name in self._files.folders(self._folder):
            if name.isdecimal() and int(name) < batch:
                self._files.remove(f"{self._folder}/{name}")

    def _place(self, batch: int) -> str:
        return f"{self._folder}/{batch}"
