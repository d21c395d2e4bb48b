"""Samples in a Kafka topic, through Spark's connector: a row is a JSON document.

    {"restow_sample": 1, "table": "offsets", "cluster": "…", "at": "2024-05-01T12:00:00.000Z", "broker": 3, …}

After a crash a query reads the same rows again, and the lake counts them once, like rows that were published
twice. The reader counts records that are no such document, and skips them.
"""

from __future__ import annotations

from functools import reduce
from operator import and_, or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.pipeline.collect import into_lake
from restow.pipeline.sampling.batches import GAPS, SAMPLES, TABLE
from restow.pipeline.schemas import CLUSTER, SAMPLED, Field
from restow.pipeline.spark_types import struct_of
from restow.pipeline.stream import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from restow.pipeline.collect import Put
    from restow.pipeline.lake import Lake
    from restow.pipeline.schemas import Table

VERSION = 1
_MARK = "restow_sample"
_TIMES = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSX"}
_WRITTEN = struct_of((Field(_MARK, "int", True), *SAMPLES))
_NAMES = tuple(each.name for each in SAMPLES)
_LOGINS = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_TICKET = "com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true;"
"""What Java has to be told in so many words: to use kinit's ticket."""


@frozen
class Arrived:
    """The result of one batch from the topic."""

    number: int
    rows: Mapping[str, int]
    refused: int
    """Records that are no samples."""

    def document(self) -> dict[str, object]:
        return {"batch": self.number, "rows": dict(self.rows), "refused": self.refused}


def connector_options(bootstrap: str, properties: Mapping[str, str]) -> dict[str, str]:
    """Return Kafka's client properties as options of Spark's connector."""
    given = {name: "".join(value) for name, value in properties.items()}
    user, password = given.pop("sasl.username", None), given.pop("sasl.password", None)
    if user is not None and password is not None:
        login = _LOGINS.get(given.get("sasl.mechanism", ""))
        if login is None:
            raise InvalidInput(f"sasl.mechanism: set it to one of {', '.join(_LOGINS)}")
        given["sasl.jaas.config"] = f"{login} required username={_quoted(user)} password={_quoted(password)};"
    kerberos = given.get("sasl.mechanism", "GSSAPI") == "GSSAPI"
    if kerberos and given.get("security.protocol", "").strip().upper().startswith("SASL"):
        given.setdefault("sasl.jaas.config", _TICKET)
    return {f"kafka.{name}": value for name, value in {**given, "bootstrap.servers": bootstrap}.items()}


def _quoted(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def into_topic(topic: str, options: Mapping[str, str]) -> Put:
    """Return a function that writes rows to the topic; those of one cluster and table stay in order."""

    def put(rows: DataFrame, counts: Mapping[str, int]) -> None:
        if not any(counts.values()):
            return
        written = rows.where(f.col(TABLE) != GAPS).select(
            f.concat_ws("/", CLUSTER, TABLE).alias("key"),
            f.to_json(f.struct(f.lit(VERSION).alias(_MARK), *_NAMES), _TIMES).alias("value"),
        )
        written.write.format("kafka").options(**options).option("topic", topic).save()

    return put


def from_topic(
    spark: SparkSession,
    topic: str,
    options: Mapping[str, str],
    lake: Lake,
    said: Callable[[Arrived], None],
    *,
    every_ms: int,
    checkpoint: str,
    all_there_is: bool = False,
) -> Stream:
    """Return the stream from a topic into the lake, not yet started.

    It begins with the first record; with `all_there_is` it ends with the last.
    """
    reader = spark.readStream.format("kafka").options(**options).option("subscribe", topic)
    # Failing would not bring back records that retention has removed.
    frame = reader.option("startingOffsets", "earliest").option("failOnDataLoss", "false").load()

    def take(batch: DataFrame, number: int) -> None:
        said(put_samples(lake, batch, number))

    return Stream(
        frame,
        take,
        name="reading the topic",
        checkpoint=checkpoint,
        trigger={"availableNow": True} if all_there_is else {"processingTime": f"{every_ms} milliseconds"},
    )


def put_samples(lake: Lake, records: DataFrame, number: int) -> Arrived:
    """Write the samples among these records to the lake."""
    rows = read(records).persist()
    try:
        arrived = _count(rows, number)
        into_lake(lake)(rows.where(f.col(TABLE).isNotNull()), arrived.rows)
    finally:
        rows.unpersist()
    return arrived


def read(records: DataFrame) -> DataFrame:
    """Parse records into samples. A record that is no sample gets nulls in all columns."""
    parsed = f.from_json(f.col("value").cast("string"), _WRITTEN, _TIMES)
    is_sample = (f.col(f"row.{_MARK}") == VERSION) & reduce(or_, (_is_row_of(table) for table in SAMPLED))
    return (
        records.select(parsed.alias("row"))
        .select(f.when(is_sample, f.col("row")).alias("row"))
        .select(*(f.col(f"row.{name}").alias(name) for name in _NAMES))
    )


def _is_row_of(table: Table) -> Column:
    """Return whether a document names this table and has all of its required columns."""
    needed = (field.name for field in table.columns if not field.nullable)
    return reduce(
        and_, (f.col(f"row.{name}").isNotNull() for name in needed), f.col(f"row.{TABLE}") == table.name
    )


def _count(rows: DataFrame, number: int) -> Arrived:
    counts = {row[TABLE]: row["count"] for row in rows.groupBy(TABLE).count().collect()}
    return Arrived(
        number=number,
        rows={each.name: counts.get(each.name, 0) for each in SAMPLED},
        refused=counts.get(None, 0),
    )
