"""Read a topic into a lake batch by batch, without a streaming query, which needs Spark's driver here.

    CHECKPOINT/next.json      where the next batch begins, by partition; written when a batch is in the lake

A batch that a kill has cut short is read again, and its samples count once.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from restow.pipeline.files import lake_files, path_for
from restow.pipeline.stream import StreamFailed
from restow.pipeline.topic import put_samples

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.pipeline.lake import Lake
    from restow.pipeline.topic import Arrived

_NEXT, _NEW = "next.json", "next.json.new"
_EARLIEST = -2


class TopicBatches:
    """One topic, and how far it has been read."""

    def __init__(self, lake: Lake, topic: str, options: Mapping[str, str], checkpoint: str) -> None:
        self._lake = lake
        self._topic = topic
        self._options = options
        self._files = lake_files(lake.spark)
        self._home = path_for(lake.spark, checkpoint)

    def take(self, partitions: int, arrived: Callable[[Arrived], None]) -> None:
        """Bring what is new in the topic into the lake, and call `arrived` if there was something."""
        number, begins = self._next()
        try:
            taken = self._take(number, begins, partitions)
        except PySparkException as error:
            raise StreamFailed(f"reading the topic stopped: {str(error).splitlines()[0]}") from error
        if taken is not None:
            ends, found = taken
            arrived(found)
            self._note(number + 1, begins | ends)

    def _take(
        self, number: int, begins: Mapping[int, int], partitions: int
    ) -> tuple[dict[int, int], Arrived] | None:
        places = {str(each): begins.get(each, _EARLIEST) for each in range(partitions)}
        reader = self._lake.spark.read.format("kafka").options(**self._options)
        reader = reader.option("subscribe", self._topic).option("failOnDataLoss", "false")
        reader = reader.option("startingOffsets", json.dumps({self._topic: places}))
        # Rows that Spark has to read again may be more than before. Those come again in the next batch.
        records = reader.load().select("value", "partition", "offset").persist()
        try:
            last = records.groupBy("partition").agg(f.max("offset").alias("last")).collect()
            ends = {row["partition"]: row["last"] + 1 for row in last}
            return (ends, put_samples(self._lake, records, number)) if ends else None
        finally:
            records.unpersist()

    def _next(self) -> tuple[int, dict[int, int]]:
        """Return the number of the next batch, and where it begins."""
        for name in (_NEXT, _NEW):
            text = self._files.read_text(f"{self._home}/{name}")
            try:
                told = json.loads(text or "")
            except ValueError:
                continue
            return told["batch"], {int(each): offset for each, offset in told["offsets"].items()}
        return 0, {}

    def _note(self, batch: int, offsets: Mapping[int, int]) -> None:
        """Replace the note so that a whole one is there at any moment, under one of the two names."""
        new, place = f"{self._home}/{_NEW}", f"{self._home}/{_NEXT}"
        self._files.write_text(new, json.dumps({"batch": batch, "offsets": dict(offsets)}))
        self._files.remove(place)
        self._files.move(new, place)
