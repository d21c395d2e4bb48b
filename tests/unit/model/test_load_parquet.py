"""Load models as Parquet files, and their use by planners."""

from __future__ import annotations

import json
from math import isnan
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from restow.cli.app import run
from restow.errors import InvalidDocument
from restow.model import Copy, LiveBroker, Partition, Snapshot, Topic, TopicPartition
from restow.model.load_parquet import is_parquet, read
from restow.model.load_text import dumps as load_text
from restow.model.load_text import loads as load_from
from restow.snapshot.text import dumps

if TYPE_CHECKING:
    from pathlib import Path


def columns(partitions: int = 2, **others: list[Any]) -> dict[str, list[Any]]:
    return {
        "topic": ["orders"] * partitions,
        "partition": list(range(partitions)),
        "cluster_id": ["c"] * partitions,
        "made_ms": [7] * partitions,
        "bytes_in.leading": [10.0] * partitions,
        "bytes_in.following": [5.0] * partitions,
    } | others


def written(folder: Path, values: dict[str, list[Any]], name: str = "load.parquet") -> Path:
    path = folder / name
    pq.write_table(pa.table(values), path)
    return path


def test_model_survives_its_parquet_file(tmp_path: Path) -> None:
    load = read(written(tmp_path, columns()))
    assert (load.cluster_id, load.made_ms) == ("c", 7)
    assert load.partitions == (TopicPartition("orders", 0), TopicPartition("orders", 1))
    assert load.resources["bytes_in"].leading.tolist() == [10.0, 10.0]
    assert load.resources["bytes_in"].following.tolist() == [5.0, 5.0]


def test_loads_by_hour_and_what_a_broker_reached_are_read_where_a_file_has_them(tmp_path: Path) -> None:
    hours = [2.0, None, *[1.0] * 166]
    load = read(
        written(tmp_path, columns(**{"bytes_in.hours": [hours, None], "bytes_in.reached": [30.0, 30.0]}))
    )
    found = load.resources["bytes_in"]
    assert found.hours["orders"][[0, 2]].tolist() == [2.0, 1.0]
    assert isnan(found.hours["orders"][1])
    assert found.reached == 30.0
    again = load_from(load_text(load)).resources["bytes_in"]
    assert again.hours["orders"][2:].tolist() == [1.0] * 166
    assert isnan(again.hours["orders"][1])
    assert again.reached == 30.0
    old = read(written(tmp_path, columns(), "old.parquet")).resources["bytes_in"]
    assert (dict(old.hours), old.reached) == ({}, None)


@pytest.mark.parametrize("hours", [[1.0], [-1.0] * 168, ["a"] * 168])
def test_loads_by_hour_that_are_no_week_are_refused(tmp_path: Path, hours: list[Any]) -> None:
    path = written(tmp_path, columns(**{"bytes_in.hours": [hours, None]}))
    with pytest.raises(InvalidDocument, match=r"bytes_in\.hours of orders"):
        read(path)


def test_folder_of_files_is_one_model(tmp_path: Path) -> None:
    written(tmp_path, columns(topic=["a", "a"]), "1.parquet")
    written(tmp_path, columns(), "2.parquet")
    assert is_parquet(tmp_path)
    assert len(read(tmp_path).partitions) == 4


@pytest.mark.parametrize(
    ("values", "says"),
    [
        (columns(cluster_id=["c", "d"]), "models of c, d: give the file of one cluster"),
        (columns(0), "no partition"),
        (columns(partition=[1, 1]), "partitions twice"),
        ({name: values for name, values in columns().items() if name != "made_ms"}, "no column made_ms"),
        (
            {name: values for name, values in columns().items() if name != "bytes_in.following"},
            "no column bytes_in.following",
        ),
        (columns(**{"bytes_in.leading": ["x", "y"]}), "no numbers in bytes_in.leading"),
        (columns(topic=["orders", None]), "1 rows have no topic"),
        (columns(topic=[1, 2]), "topic must be text"),
        (columns(partition=["0", "1"]), "partition must be whole numbers"),
        (columns(partition=[0.0, 1.0]), "partition must be whole numbers"),
        (columns(cluster_id=[None, "c"]), "1 rows have no cluster_id"),
        (columns(made_ms=["now", "then"]), "made_ms must be whole numbers"),
        (columns(made_ms=[7, None]), "1 rows have no made_ms"),
    ],
)
def test_parquet_of_another_shape_is_refused(tmp_path: Path, values: dict[str, list[Any]], says: str) -> None:
    with pytest.raises(InvalidDocument) as complaint:
        read(written(tmp_path, values))
    assert says in str(complaint.value)


def test_file_that_is_not_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "load.parquet"
    path.write_bytes(b"half a file")
    with pytest.raises(InvalidDocument, match="cannot be read as Parquet"):
        read(path)
    with pytest.raises(InvalidDocument, match="cannot be read as Parquet"):
        read(tmp_path / "nowhere.parquet")


def _cluster(many: int) -> Snapshot:
    """Return two brokers with half of the partitions each."""
    partitions = tuple(
        Partition(
            number=number,
            replicas=(number * 2 // many,),
            isr=(number * 2 // many,),
            leader=number * 2 // many,
            copies=(Copy(broker=number * 2 // many, log_dir="/d", size_bytes=1000),),
        )
        for number in range(many)
    )
    return Snapshot(
        cluster_id="c",
        taken_ms=5,
        controller=0,
        brokers=tuple(LiveBroker(id=broker, host="h", port=1) for broker in range(2)),
        topics=(Topic(name="orders", partitions=partitions),),
    )


def test_damaged_parquet_is_refused_wherever_the_damage_is(tmp_path: Path) -> None:
    """One byte after the other is changed: each file is read, or refused with a message."""
    whole = written(tmp_path, columns(40)).read_bytes()
    path = tmp_path / "damaged.parquet"
    refused = 0
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            read(path)
        except InvalidDocument:
            refused += 1
    for size in range(0, len(whole), 11):
        path.write_bytes(whole[:size])
        with pytest.raises(InvalidDocument):
            read(path)
    assert refused > 20


def test_plan_refuses_load_model_of_another_cluster(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = tmp_path / "now.json"
    now.write_text(dumps(_cluster(2)), encoding="utf-8")
    load = written(tmp_path, columns(cluster_id=["other", "other"]))
    command = ["plan", "balance", "--snapshot", str(now), "--load", str(load)]
    assert run([*command, "-o", str(tmp_path / "plan.json")]) == 2
    assert "the load model is of cluster 'other', but this is 'c'" in capsys.readouterr().err
    assert not (tmp_path / "plan.json").exists()


def test_plan_uses_a_parquet_load_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All sizes are equal, but not the bytes in, so the heavy partitions must be spread."""
    now = tmp_path / "now.json"
    now.write_text(dumps(_cluster(12)), encoding="utf-8")
    heavy = {"bytes_in.leading": [100.0] * 6 + [0.0] * 6, "bytes_in.following": [0.0] * 12}
    load = written(tmp_path, columns(12, **heavy))
    command = ["plan", "balance", "--snapshot", str(now), "--json"]
    assert run(command) == 0
    assert json.loads(capsys.readouterr().out)["moves"] == 0
    assert run([*command, "--load", str(load)]) == 0
    assert json.loads(capsys.readouterr().out)["moves"] == 6
    assert run([*command, "--load", str(tmp_path / "nowhere.parquet")]) == 2
    assert "nowhere.parquet" in capsys.readouterr().err
