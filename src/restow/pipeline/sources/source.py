"""Spark's data sources of a cluster's samples, for batches and for streams.

    spark.read.format("restow.replicas").option("bootstrap.servers", "localhost:9092").load()
    spark.readStream.format("restow.offsets").option("bootstrap.servers", …).option("every", "30s").load()

Other options are Kafka's own client properties. A batch is one sample, taken when it runs. A stream takes one
whenever another `every` has begun; its offsets are those moments, so it goes on after a restart with the next
one, and does not make up what nobody saw meanwhile. What is read again is asked again: whoever needs the same
sample twice must keep it, as `restow.pipeline.collect` does.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from restow.client import Unreachable, ask_cluster, run_alone
from restow.client.properties import settings
from restow.client.property_files import Property
from restow.errors import InvalidInput
from restow.pipeline.durations import milliseconds
from restow.pipeline.schemas import SAMPLED, table
from restow.pipeline.sources.batches import SAMPLES, batches
from restow.pipeline.sources.questions import Gap, ask
from restow.pipeline.sources.shares import Share, nobody, shares_of
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

    from restow.client import KafkaAdmin, Settings

_LOG = logging.getLogger(__name__)

BOOTSTRAP, EVERY, CLUSTER = "bootstrap.servers", "every", "cluster"
EVERY_DEFAULT = "30s"
_PATIENCE = {"request.timeout.ms": "10000"}
"""A sample should not wait as long for a broker as a person would."""


class Where:
    """The options of a source: how to reach the cluster, which tables, how often."""

    def __init__(self, options: Mapping[str, str], tables: Sequence[str], name: str) -> None:
        given = {key.lower(): value for key, value in options.items()}
        if not given.get(BOOTSTRAP):
            raise InvalidInput(f'{name}: which cluster? Add .option("{BOOTSTRAP}", "localhost:9092")')
        self.tables = tuple(tables)
        self.cluster = given.pop(CLUSTER, "")
        self.every_ms = milliseconds(given.pop(EVERY, EVERY_DEFAULT), f"{name}, option {EVERY}")
        self.bootstrap = given.pop(BOOTSTRAP)
        self.name = name
        self._properties = _PATIENCE | given
        self.settings()

    def settings(self) -> Settings:
        """Made anew by each process: a TLS context cannot be sent."""
        where = f"{self.name}, option"
        layer = {key: Property(value, where) for key, value in self._properties.items()}
        return settings(self.bootstrap, layer)

    def shares(self) -> list[Share]:
        """The cluster as it is now."""

        async def look(admin: KafkaAdmin) -> list[Share]:
            return shares_of(await admin.cluster(), await admin.topics())

        _hush()
        return ask_cluster(self.settings(), look)

    def read(self, share: Share, schema: StructType) -> Iterator[Any]:
        """Ask one broker. What it does not tell goes to the log of whoever runs this."""
        _hush()
        answers = run_alone(ask(self.settings(), share, self.tables, SystemClock()))
        for each in answers:
            if isinstance(each, Gap):
                _LOG.warning("broker %s, no %s: %s", each.broker, ", ".join(each.tables), each.reason)
        return batches(share, answers, schema)


def _hush() -> None:
    """What kafka-python has to say of each attempt to connect is said better in a gap."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


class _Once(DataSourceReader):
    """One sample."""

    def __init__(self, where: Where, schema: StructType) -> None:
        self._where = where
        self._schema = schema

    def partitions(self) -> list[Share]:
        return self._where.shares()

    def read(self, partition: Any) -> Iterator[Any]:
        return self._where.read(partition, self._schema)


class _Again(DataSourceStreamReader):
    """A sample whenever it is time for one."""

    def __init__(self, where: Where, schema: StructType) -> None:
        self._where = where
        self._schema = schema

    def initialOffset(self) -> dict[str, int]:  # noqa: N802  (Spark's names)
        return {"at_ms": 0}

    def latestOffset(self) -> dict[str, int]:  # noqa: N802
        every_ms = self._where.every_ms
        return {"at_ms": SystemClock().now_ms() // every_ms * every_ms}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[Share]:
        """After a restart Spark asks for what lies between the end and itself: nothing."""
        if start == end:
            return []
        try:
            return self._where.shares()
        except Unreachable as error:
            return [nobody(self._where.cluster, str(error))]

    def read(self, partition: Any) -> Iterator[Any]:
        return self._where.read(partition, self._schema)


class Source(DataSource):
    """What the sources have in common; each is one table, or all of them."""

    table: ClassVar[str]

    @classmethod
    def name(cls) -> str:
        return f"restow.{cls.table}"

    def schema(self) -> StructType:
        return SAMPLES if self.table == "samples" else table(self.table).schema

    def reader(self, schema: StructType) -> DataSourceReader:
        return _Once(self._where(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return _Again(self._where(), schema)

    def _where(self) -> Where:
        every = tuple(each.name for each in SAMPLED)
        return Where(self.options, every if self.table == "samples" else (self.table,), self.name())


class Replicas(Source):
    table = "replicas"


class Offsets(Source):
    table = "offsets"


class Assignment(Source):
    table = "assignment"


class Groups(Source):
    table = "groups"


class DiskSpace(Source):
    table = "disks"


class Samples(Source):
    table = "samples"


SOURCES = (Replicas, Offsets, Assignment, Groups, DiskSpace, Samples)
