"""The assignor lab on tables of the lake: the samples that count, the joins, one row per assignor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from restow.pipeline.jobs.lab import MOST_ROUNDS, OURS, TABLE, lab

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    Made = Callable[..., DataFrame]

pytestmark = pytest.mark.spark


def groups(made: Made, *rounds: dict[int, str | None], at: int = 0, **more: Any) -> DataFrame:
    """Return one sample per round, each with the owner of every partition of t."""
    rows = []
    for number, owners in enumerate(rounds):
        for partition, owner in owners.items():
            rack = None if owner is None else {"a": "east", "b": "west"}.get(owner)
            rows.append(
                {
                    "at": at + 30 * number,
                    "partition": partition,
                    "member": owner,
                    "rack": rack,
                    "assignor": "range",
                    "subscription": None if owner is None else ["t"],
                    "committed": 10 * partition,
                    **more,
                }
            )
    return made("groups", rows)


def tables(made: Made, partitions: int = 4, **more: Any) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Return tables with all partitions on broker 1 in the east and the odd ones also on 2 in the west."""
    assigned = [
        {"at": at, "partition": number, "replicas": [2 if number % 2 else 1], **more}
        for number in range(partitions)
        for at in (0, 30)
    ]
    disks = [{"at": 0, "broker": 1, "rack": "east"}, {"at": 0, "broker": 2, "rack": "west"}]
    ends = [
        {"at": at, "partition": number, "latest": 10 * number + at}
        for number in range(partitions)
        for at in (0, 30)
    ]
    return made("assignment", assigned), made("disks", disks), made("offsets", ends)


def answers(frame: DataFrame) -> dict[str, dict[str, Any]]:
    assert frame.schema.fieldNames() == TABLE.schema.fieldNames()
    found = [row.asDict() for row in frame.collect()]
    assert len({row["assignor"] for row in found}) == len(found)
    return {row["assignor"]: row for row in found}


def test_lab_measures_cross_rack_reads_and_lag(rows_of: Made) -> None:
    held = {0: "b", 1: "a", 2: "b", 3: "b"}
    found = answers(lab(groups(rows_of, held), *tables(rows_of)))
    assert set(found) == set(OURS)
    for row in found.values():
        assert (row["members"], row["topics"], row["partitions"], row["rounds"]) == (2, 1, 4, 1)
        assert (row["uses"], row["error"], row["skew_now"], row["skew"]) == ("range", None, 1.5, 1.0)
        assert row["lag"] == 4 * 30, "the last ends count"
        assert row["cross_rack_now"] == 3, "0, 1 and 2 are read from the other rack"
        assert row["replayed"] == 0
    assert found["range"]["cross_rack"] == 0
    assert found["sticky"]["moved"] == 1


def test_lab_uses_the_last_sample_and_replays_member_changes(rows_of: Made) -> None:
    alone = dict.fromkeys(range(4), "a")
    both: dict[int, str | None] = {0: "a", 1: "a", 2: "b", 3: "b"}
    samples = groups(rows_of, alone, alone, both, both, alone, both)
    found = answers(lab(samples.unionByName(samples.limit(3)), *tables(rows_of)))
    for row in found.values():
        assert (row["skew_now"], row["rounds"]) == (1.0, 4)
    assert found["sticky"]["replayed"] == found["cooperative-sticky"]["replayed"] == 6


def test_lab_replays_only_the_latest_changes_of_a_flapping_group(rows_of: Made) -> None:
    flapping = [{0: "ab"[number % 2]} for number in range(MOST_ROUNDS + 11)]
    found = answers(lab(groups(rows_of, *flapping), *tables(rows_of, 1), ["range"]))
    assert (found["range"]["rounds"], found["range"]["replayed"]) == (MOST_ROUNDS, MOST_ROUNDS - 1)


def test_lab_gives_the_reason_for_a_group_without_members_or_topics(rows_of: Made) -> None:
    empty = groups(rows_of, {0: None, 1: None}, group="empty", state="Empty")
    lost = groups(rows_of, {0: "a"}, group="lost", topic="gone", subscription=["gone"])
    rows = lab(empty.unionByName(lost), *tables(rows_of), ["sticky"]).collect()
    assert {row["group"]: row["error"] for row in rows} == {
        "empty": "the group has no members",
        "lost": "the group has no partitions",
    }


def test_lab_ignores_a_deleted_topic(rows_of: Made) -> None:
    assignment, disks, offsets = tables(rows_of)
    old = rows_of("assignment", [{"at": -7200, "topic": "old", "partition": number} for number in range(9)])
    reading = groups(rows_of, {0: "a", 1: "b"}, subscription=["t", "old"])
    found = answers(lab(reading, assignment.unionByName(old), disks, offsets, ["range"]))
    assert (found["range"]["topics"], found["range"]["partitions"]) == (1, 4)


def test_lab_keeps_groups_of_different_clusters_apart(rows_of: Made) -> None:
    here, there = groups(rows_of, {0: "a"}), groups(rows_of, {0: "a"}, cluster="d")
    rows = lab(here.unionByName(there), *tables(rows_of), ["range"]).collect()
    assert {row["cluster"]: row["error"] for row in rows} == {"c": None, "d": "the group has no partitions"}


def test_lab_without_groups_is_empty(rows_of: Made) -> None:
    assert lab(groups(rows_of).limit(0), *tables(rows_of)).collect() == []
