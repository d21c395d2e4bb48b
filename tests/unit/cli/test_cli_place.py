"""`restow place`: placements, and refused requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

WORKED_EXAMPLE = [[0, 1, 2], [1, 2, 3], [2, 3, 4], [3, 4, 0], [4, 0, 1], [0, 2, 3], [1, 3, 4], [2, 4, 0]]
NEW = ("place", "--brokers", "0-4", "--partitions", "8", "--replication-factor", "3")


def kafka_json(*partitions: tuple[str, int]) -> str:
    rows = [{"topic": topic, "partition": partition, "replicas": [0]} for topic, partition in partitions]
    return json.dumps({"version": 1, "partitions": rows})


def replicas(document):
    return [row["replicas"] for row in document["partitions"]]


def test_place_with_a_start_index_equals_kafka(answer) -> None:
    document = answer(*NEW, "--start-index", "0")
    assert replicas(document) == WORKED_EXAMPLE
    assert document["seed"] is None


def test_place_repeats_a_random_start_with_its_seed(answer) -> None:
    first = answer(*NEW)
    again = answer(*NEW, "--seed", str(first["seed"]))
    assert replicas(again) == replicas(first)
    assert again["seed"] == first["seed"]


def test_place_starts_differently_with_other_seeds(answer) -> None:
    assert len({str(replicas(answer(*NEW, "--seed", str(seed)))) for seed in range(8)}) > 1


def test_place_numbers_partitions_from_start_partition(answer) -> None:
    document = answer(*NEW, "--start-index", "0", "--start-partition", "5")
    assert [row["partition"] for row in document["partitions"]] == list(range(5, 13))
    assert replicas(document)[:3] == WORKED_EXAMPLE[5:]


@pytest.mark.parametrize(
    "brokers",
    [
        ("--brokers", "0:a,1:b,2:c,3:a,4:b,5:c"),
        ("--brokers", "0-5", "--racks", "a,b,c"),
        ("--brokers", "0-5", "--racks", "a,b,c,a,b,c"),
        ("--broker-list", "0:a,3:a,1:b,4:b,2:c,5:c"),
    ],
)
def test_place_takes_racks_in_several_forms(answer, brokers) -> None:
    document = answer("place", *brokers, "-p", "6", "-r", "3", "--start-index", "0")
    assert replicas(document)[:2] == [[0, 1, 2], [1, 2, 3]]
    assert document["evaluation"]["rack_spread"] == {
        "racks": 3,
        "fewest": 3,
        "most": 3,
        "partitions_short": 0,
    }


def test_place_follows_the_rack_mode(answer, refused) -> None:
    some = ("place", "--brokers", "0-1:a,2", "-p", "3", "-r", "2", "--start-index", "0")
    assert "--disable-rack-aware" in refused(*some)
    assert answer(*some, "--disable-rack-aware") == answer(*some, "--rack-mode", "safe")
    assert "disagree" in refused(*some, "--disable-rack-aware", "--rack-mode", "safe")


def test_place_keeps_existing_partitions_when_it_adds_some(answer, invoke, tmp_path: Path) -> None:
    before = invoke(*NEW, "--start-index", "0", "--topic", "t", "--format", "kafka")
    file = tmp_path / "t.json"
    file.write_text(before.stdout)
    document = answer("place", "--current", str(file), "--to", "10", "--brokers", "0-4")
    assert replicas(document)[:8] == WORKED_EXAMPLE
    assert replicas(document)[8:] == [[3, 4, 0], [4, 0, 1]]
    assert [row["partition"] for row in document["partitions"] if row["new"]] == [8, 9]
    assert document["topic"] == "t"


def test_place_prints_reassignment_json_with_format_kafka(invoke) -> None:
    result = invoke("place", "--by-hand", "0:1,1:0", "--topic", "t", "--format", "kafka")
    assert json.loads(result.stdout) == {
        "version": 1,
        "partitions": [
            {"topic": "t", "partition": 0, "replicas": [0, 1]},
            {"topic": "t", "partition": 1, "replicas": [1, 0]},
        ],
    }


def test_place_judges_an_assignment_by_hand(answer) -> None:
    document = answer("place", "--by-hand", "0:1:2,1:2:0", "--brokers", "0:a,1:b,2:b")
    assert document["evaluation"]["rack_spread"]["fewest"] == 2
    assert [(b["id"], b["replicas"], b["leaders"]) for b in document["brokers"]] == [
        (0, 2, 1),
        (1, 2, 1),
        (2, 2, 0),
    ]


def test_place_judges_the_current_assignment_without_to(answer, tmp_path: Path) -> None:
    file = tmp_path / "now.yaml"
    file.write_text("'0': [7, 8]\n'1': [8, 7]\n")
    document = answer("place", "--current", str(file))
    assert [b["id"] for b in document["brokers"]] == [7, 8]
    assert not any(row["new"] for row in document["partitions"])


@pytest.mark.parametrize(
    "text",
    [
        "brokers: 0-4\npartitions: 8\nreplication_factor: 3\nstart_index: 0\n",
        "brokers: [0, 1, 2, 3, 4]\npartitions: 8\nreplication_factor: 3\nstart_index: 0\n",
        '{"brokers": [{"id": 0}, 1, 2, 3, 4], "partitions": 8, "replication_factor": 3, "start_index": 0}',
    ],
)
def test_topic_file_equals_flags(answer, tmp_path: Path, text: str) -> None:
    file = tmp_path / "topic"
    file.write_text(text)
    assert replicas(answer("place", str(file))) == WORKED_EXAMPLE
    assert len(replicas(answer("place", str(file), "--partitions", "2"))) == 2


def test_topic_file_takes_racks_as_a_mapping(answer, tmp_path: Path) -> None:
    file = tmp_path / "topic.yaml"
    file.write_text(
        "brokers: {a: [0, 3], b: [1, 4], c: [2, 5]}\npartitions: 2\nreplication_factor: 3\nstart_index: 0"
    )
    assert replicas(answer("place", str(file))) == [[0, 1, 2], [1, 2, 3]]


def test_place_reads_a_topic_file_from_standard_input(invoke) -> None:
    result = invoke(
        "place", "-", "--json", stdin="brokers: 0-4\npartitions: 8\nreplication_factor: 3\nstart_index: 0\n"
    )
    assert replicas(json.loads(result.stdout)) == WORKED_EXAMPLE


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--brokers"),
        (("--brokers", "0-2"), "--partitions"),
        (("--brokers", "0-2", "-p", "3"), "--replication-factor"),
        (("--brokers", "", "-p", "3", "-r", "1"), "not a broker"),
        (("--brokers", "0,,1", "-p", "3", "-r", "1"), "not a broker"),
        (("--brokers", "-1", "-p", "3", "-r", "1"), "not a broker"),
        (("--brokers", "5-2", "-p", "3", "-r", "1"), "2-5"),
        (("--brokers", "0:", "-p", "3", "-r", "1"), "colon"),
        (("--brokers", "0-2000000000", "-p", "3", "-r", "1"), "10,000"),
        (("--brokers", "0-9998,0-9998", "-p", "3", "-r", "1"), "10,000"),
        (("--brokers", "0,0", "-p", "3", "-r", "1"), "more than once"),
        (("--brokers", "0:a,1:b", "--racks", "a", "-p", "3", "-r", "1"), "one of the two"),
        (("--brokers", "0-2", "--racks", "a,,b", "-p", "3", "-r", "1"), "empty name"),
        (("--brokers", "0-2", "-p", "0", "-r", "1"), "larger than 0"),
        (("--brokers", "0-2", "-p", "-7", "-r", "1"), "larger than 0"),
        (("--brokers", "0-2", "-p", "1000001", "-r", "1"), "1,000,000"),
        (("--brokers", "0-2", "-p", "9" * 40, "-r", "1"), "1,000,000"),
        (("--brokers", "0-2", "-p", "3", "-r", "4"), "lower the factor"),
        (("--brokers", "0-2", "-p", "3", "-r", "1", "--start-index", "-1"), "0 or more"),
        (("--brokers", "0-2", "-p", "3", "-r", "1", "--seed", "1", "--start-index", "1"), "one of the two"),
        (("--brokers", "0-2", "-p", "3", "-r", "1", "--to", "4"), "--current"),
        (("--brokers", "0-2", "-p", "3", "-r", "1", "--format", "kafka"), "--topic"),
        (("--by-hand", "0:1,1:0", "-p", "2"), "--by-hand"),
        (("--by-hand", "0:0"), "more than once"),
        (("--by-hand", "0:1", "--brokers", "0"), "unknown broker"),
        (("--by-hand", "0:1,,1:0",), "empty"),
    ],
)  # fmt: skip
def test_place_refuses_wrong_flags(refused, arguments, says) -> None:
    assert says in refused("place", *arguments)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (kafka_json(("a", 0), ("b", 0)), "--topic"),
        ('{"version":2,"partitions":[]}', "version"),
        (kafka_json(("a", 0), ("a", 0)), "twice"),
        ('{"version":1,"partitions":[{"topic":"a","partition":0}]}', "'replicas' is missing"),
        ('{"version":1,"partitions":[{"topic":"a","partition":0,"replicas":["0"]}]}', "replicas[0]"),
        ('{"version":1,"partitions":[]}', "no partitions"),
        ('{"version":1,"partitions":null}', "no partitions"),
        ('{"zero": [0]}', "'zero' is not a partition"),
        ("[[0, 1], 7]", "expected a list"),
        ('{"1": [0]}', "partition 0"),
        ("[[0]]", "more"),
    ],
)  # fmt: skip
def test_place_refuses_a_malformed_current_assignment(refused, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "current.json"
    file.write_text(text)
    assert says in refused("place", "--current", str(file), "--to", "1", "--brokers", "0-2")


def test_place_picks_one_of_several_topics(answer, tmp_path: Path) -> None:
    rows = [{"topic": name, "partition": 0, "replicas": [broker]} for name, broker in (("a", 0), ("b", 1))]
    file = tmp_path / "current.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    assert replicas(answer("place", "--current", str(file), "--topic", "b", "--to", "2", "--brokers", "0-1"))[
        0
    ] == [1]
