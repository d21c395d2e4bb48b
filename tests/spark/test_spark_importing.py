"""Import samples of other tools, with a mapping file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from restow.errors import InvalidDocument, InvalidInput, LakeFailed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SIZES = """
table = "replicas"
format = "csv"

[where]
metric = "kafka_log_log_size"

[columns]
cluster = { value = "production" }
at = { column = "timestamp", unit = "ms" }
broker = { column = "instance", pattern = 'kafka-(\\d+)' }
topic = "topic"
partition = "partition"
size = "value"
log_dir = { value = "/data" }
"""
LEADERS = """
table = "assignment"
format = "parquet"

[columns]
cluster = { value = "production" }
at = "time"
topic = "topic"
partition = "partition"
leader = "leader"
replicas = { column = "members", separator = "," }
isr = { column = "members", separator = "," }
"""


def test_import_turns_a_prometheus_export_into_samples(spark: SparkSession, tmp_path: Path) -> None:
    from restow.pipeline.importing import import_map, imported
    from restow.pipeline.lake import Lake

    (tmp_path / "sizes.csv").write_text(
        "metric,instance,topic,partition,timestamp,value\n"
        "kafka_log_log_size,kafka-3:9404,orders,0,1788220800250,1.5e9\n"
        "kafka_log_log_size,kafka-3:9404,orders,1,1788220800250,9007199254740993\n"
        "kafka_other,kafka-3:9404,orders,1,1788220800250,NaN\n"
    )
    pq.write_table(
        pa.table(
            {"time": ["2026-09-01T00:00:01Z"], "topic": ["orders"], "partition": [0], "leader": [3]}
        ).append_column("members", pa.array(["3, 4"])),
        tmp_path / "leaders.parquet",
    )
    lake = Lake(spark, str(tmp_path / "lake"))
    for name, text in (("sizes.csv", SIZES), ("leaders.parquet", LEADERS)):
        rows = imported(spark, [str(tmp_path / name)], import_map(text, "map.toml"))
        lake.write(rows, "replicas" if text is SIZES else "assignment")
    first, second = lake.read("replicas").orderBy("partition").collect()
    assert (first.cluster, first.broker, first.size, first.is_future) == (
        "production",
        3,
        1_500_000_000,
        False,
    )
    assert first["at"].replace(tzinfo=UTC) == datetime(2026, 9, 1, 0, 0, 0, 250_000, tzinfo=UTC)
    assert second.size == 9_007_199_254_740_993
    (leader,) = lake.read("assignment").collect()
    assert (leader.replicas, leader["at"].replace(tzinfo=UTC)) == (
        [3, 4],
        datetime(2026, 9, 1, 0, 0, 1, tzinfo=UTC),
    )

    (tmp_path / "bad.csv").write_text(
        "metric,instance,topic,partition,timestamp,value\nkafka_log_log_size,elsewhere,orders,0,1788220800250,7\n"
    )
    with pytest.raises(LakeFailed, match="a broker is missing"):
        lake.write(imported(spark, [str(tmp_path / "bad.csv")], import_map(SIZES, "map.toml")), "replicas")
    (tmp_path / "bad.csv").write_text("metric,value\nkafka_log_log_size,7\n")
    with pytest.raises(InvalidInput, match=r"bad.csv has no column 'timestamp': it has metric, value"):
        imported(spark, [str(tmp_path / "bad.csv")], import_map(SIZES, "map.toml"))
    with pytest.raises(InvalidInput, match=r"nowhere.csv"):
        imported(spark, [str(tmp_path / "nowhere.csv")], import_map(SIZES, "map.toml"))


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("[columns]", "columns", "map.toml is not TOML"),
        ('"replicas"', '"replica"', "which table it is: replicas, offsets"),
        ('"csv"', '"json"', "csv or parquet"),
        ('size = "value"', "", "does not say where size of replicas come from"),
        ('size = "value"', 'sise = "value"', "replicas has no column 'sise'"),
        ('"ms"', '"min"', "the unit 'min' is none of s, ms, us"),
        ("(\\d+)", "(", "map.toml, broker: the pattern cannot be read"),
        ("(\\d+)", "x", "into brackets"),
        ('topic = "topic"', "topic = { }", "map.toml, topic: write a column's name"),
        ('format = "csv"', 'format = "csv"\nfomat = 1', "says 'fomat'"),
    ],
)
def test_import_refuses_a_wrong_mapping_with_the_reason(before: str, after: str, said: str) -> None:
    from restow.pipeline.importing import import_map

    with pytest.raises(InvalidDocument) as complaint:
        import_map(SIZES.replace(before, after, 1), "map.toml")
    assert said in str(complaint.value)
