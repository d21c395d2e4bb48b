"""Spark data sources for samples of a cluster, for batches and for streams.

    spark.read.format("restow.replicas").option("bootstrap.servers", "localhost:9092").load()
    spark.readStream.format("restow.offsets").option("bootstrap.servers", …).option("every", "30s").load()

Other options are Kafka's client properties. A batch is one sample, taken when it runs. A stream takes a
sample at each multiple of `every`. These times are its offsets, so after a restart it continues with the next
one and does not make up missed samples. A repeated read asks the cluster again: a caller that needs the same
sample twice must keep it, as `restow.pipeline.collect` does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from restow.client import Unreachable, ask_cluster, hush, run_alone
from restow.pipeline.sampling.batches import SAMPLES, batches
from restow.pipeline.sampling.questions import Gap, ask
from restow.pipeline.sampling.shares import Share, nobody, shares_of
from restow.pipeline.sampling.where import Where
from restow.pipeline.schemas import SAMPLED, Field, table
from restow.pipeline.spark_types import struct_of
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql.types import StructType

    from restow.client import KafkaAdmin

_LOG = logging.getLogger(__name__)


def _shares(where: Where) -> list[InputPartition]:
    """Return one input partition per broker of the cluster."""

    async def look(admin: KafkaAdmin) -> list[Share]:
        return shares_of(await admin.describe_cluster(), await admin.describe_topics())

    hush()
    return [InputPartition(share) for share in ask_cluster(where.settings(), look)]


def _read(where: Where, share: Share, columns: tuple[Field, ...]) -> Iterator[Any]:
    """Ask one broker, and log its gaps in the executor."""
    hush()
    answers = run_alone(ask(where.settings(), share, where.tables, SystemClock()))
    for each in answers:
        if isinstance(each, Gap):
            _LOG.warning("broker %s, no %s: %s", each.broker, ", ".join(each.tables), each.reason)
    return batches(share, answers, columns)


class _Reader:
    """Reads a sample, one broker in each partition."""

    def __init__(self, where: Where, columns: tuple[Field, ...]) -> None:
        self._where = where
        self._columns = columns

    def read(self, partition: Any) -> Iterator[Any]:
        return _read(self._where, partition.value, self._columns)


class _Once(_Reader, DataSourceReader):
    """Reads one sample."""

    def partitions(self) -> list[InputPartition]:
        return _shares(self._where)


class _Again(_Reader, DataSourceStreamReader):
    """Reads a sample at each multiple of the interval."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  (Spark's names)
        return {"at_ms": 0}

    def _latest(self) -> dict[str, int]:
        every_ms = self._where.every_ms
        return {"at_ms": SystemClock().now_ms() // every_ms * every_ms}

    latestOffset: Any = _latest  # noqa: N815
    """From 4.2 on Spark may also pass where it is and how much to read; a sample is always read whole."""

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """Return the shares to ask. After a restart Spark asks for an empty range: return none."""
        if start == end:
            return []
        try:
            return _shares(self._where)
        except Unreachable as error:
            return [InputPartition(nobody(self._where.cluster, str(error)))]


class ClusterSource(DataSource):
    """The base of the sources; each is one table, or all of them."""

    table: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return f"restow.{cls.table}"

    def schema(self) -> StructType:
        return struct_of(self._columns())

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002
        return _Once(self._where(), self._columns())

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002
        return _Again(self._where(), self._columns())

    def _columns(self) -> tuple[Field, ...]:
        return SAMPLES if self.table == "samples" else table(self.table).columns

    def _where(self) -> Where:
        every = tuple(each.name for each in SAMPLED)
        return Where(self.options, every if self.table == "samples" else (self.table,), self.name())


class Replicas(ClusterSource):
    table = "replicas"


class Offsets(ClusterSource):
    table = "offsets"


class AssignmentSource(ClusterSource):
    table = "assignment"


class Groups(ClusterSource):
    table = "groups"


class DiskSpace(ClusterSource):
    table = "disks"


class Samples(ClusterSource):
    table = "samples"


SOURCES = (Replicas, Offsets, AssignmentSource, Groups, DiskSpace, Samples)
