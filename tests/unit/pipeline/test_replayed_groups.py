"""A group replayed with assignors: measures computed by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from restow.pipeline.replay import replayed

AT = datetime(2026, 1, 1, tzinfo=UTC)
ALL = ("range", "roundrobin", "sticky", "cooperative-sticky")


def member(name: str, *topics: str, rack: str | None = None) -> dict[str, Any]:
    return {"member": name, "rack": rack, "subscription": list(topics) or None}


def topic(name: str, latest: list[int | None], racks: list[list[str]] | None = None) -> dict[str, Any]:
    numbers = list(range(len(latest)))
    return {"topic": name, "partition": numbers, "latest": latest, "racks": racks or [[] for _ in numbers]}


def held(name: str, owners: list[str | None], committed: int | None = 0) -> list[dict[str, Any]]:
    return [
        {"topic": name, "partition": number, "member": owner, "committed": committed}
        for number, owner in enumerate(owners)
    ]


def row(**changes: Any) -> dict[str, Any]:
    about = {"cluster": "c", "group": "g", "at": AT, "assignor": "range"}
    return about | {"members": [], "held": [], "topics": [], "rounds": []} | changes


def answers(given: dict[str, Any], *assignors: str) -> dict[str, dict[str, Any]]:
    return {each["assignor"]: each for each in replayed(given, assignors or ALL)}


def test_replay_evens_out_a_lopsided_group_and_counts_moves() -> None:
    group = row(
        members=[member("a", "t"), member("b", "t")],
        held=held("t", ["a", "a", "a", "a", "a", "b"], committed=10),
        topics=[topic("t", [110, 10, 10, 10, 10, 10])],
    )
    found = answers(group)
    for each in found.values():
        assert (each["members"], each["topics"], each["partitions"], each["lag"]) == (2, 1, 6, 100)
        assert (each["skew_now"], each["skew"]) == (pytest.approx(5 / 3), 1.0)
        assert (each["balance_score_now"], each["balance_score"]) == (4, 0)
        assert (each["lag_skew_now"], each["lag_skew"]) == (2.0, 2.0)
        assert each["cross_rack"] is None
        assert each["error"] is None
    assert found["sticky"]["moved"] == found["cooperative-sticky"]["moved"] == 2
    assert found["range"]["moved"] == 2
    assert found["roundrobin"]["moved"] == 2


def test_lag_skew_weighs_members_by_their_lag() -> None:
    group = row(
        members=[member("a", "t"), member("b", "t")],
        held=held("t", ["a", "b", "a", "b"]),
        topics=[topic("t", [300, 100, 0, 0])],
    )
    now = answers(group, "range")["range"]
    assert now["lag_skew_now"] == 1.5
    assert now["lag_skew"] == 2.0, "range gives the first two partitions to a"


def test_replay_counts_reads_across_racks() -> None:
    group = row(
        members=[member("a", "t", rack="east"), member("b", "t", rack="west")],
        held=held("t", ["a", "a", "b", "b"]),
        topics=[topic("t", [0] * 4, [["west"], ["west"], ["east"], ["east"]])],
    )
    found = answers(group)
    assert found["range"]["cross_rack_now"] == 4
    assert found["range"]["cross_rack"] == 0
    assert found["range"]["lag_skew"] is None, "there is no lag to share"


def test_replay_uses_one_assignor_for_the_whole_history() -> None:
    two, three = [member(name, "t") for name in "ab"], [member(name, "t") for name in "abc"]
    group = row(
        members=two,
        held=held("t", ["a", "b"] * 3),
        topics=[topic("t", [0] * 6)],
        rounds=[{"at": AT, "members": each} for each in (two, three, two)],
    )
    found = answers(group)
    assert {each["rounds"] for each in found.values()} == {3}
    assert found["sticky"]["replayed"] == 4, "two to c, and back"
    assert found["range"]["replayed"] > 4


def test_time_without_an_owner_depends_on_what_members_give_up() -> None:
    two, three = [member(name, "t") for name in "ab"], [member(name, "t") for name in "abc"]
    group = row(
        members=two,
        held=held("t", ["a", "a", "a", "b"]),
        topics=[topic("t", [0] * 4)],
        rounds=[{"at": AT, "members": each} for each in (two, three)],
    )
    found = answers(group, "sticky", "cooperative-sticky", "uniform")
    assert {each["moved"] for each in found.values()} == {1}
    assert {name: each["without_owner_s"] for name, each in found.items()} == {
        "sticky": 4 * 3.0,
        "cooperative-sticky": 3.0,
        "uniform": 5.0,
    }
    assert {name: each["replayed_without_owner_s"] for name, each in found.items()} == {
        "sticky": 4 * 3.0,
        "cooperative-sticky": 3.0,
        "uniform": 5.0,
    }


def test_lag_is_cleared_when_the_busiest_member_has_read_its_own() -> None:
    group = row(
        members=[member("a", "t"), member("b", "t")],
        held=held("t", ["a", "a", "b", "b"]),
        topics=[topic("t", [300, 300, 0, 0])],
    )
    found = answers(group, "lag-aware", "range")
    assert found["range"]["most_lag_now"] == found["range"]["most_lag"] == 600
    assert found["lag-aware"]["most_lag"] == 300


def test_members_without_subscriptions_read_all_topics_of_the_group() -> None:
    group = row(
        members=[member("a"), member("b")], held=held("t", ["a", "a"]), topics=[topic("t", [5, None])]
    )
    assert answers(group, "range")["range"]["skew"] == 1.0


def test_replay_handles_unassigned_and_unknown_partitions() -> None:
    group = row(
        members=[member("a", "t", "gone")],
        held=[*held("t", [None, "left"], committed=None), *held("gone", ["a"])],
        topics=[topic("t", [7, 7])],
    )
    found = answers(group, "sticky")["sticky"]
    assert (found["moved"], found["lag"], found["skew_now"], found["skew"]) == (0, 0, None, 1.0)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (row(topics=[topic("t", [0])]), "the group has no members"),
        (row(members=[member("a", "t")]), "the group has no partitions"),
    ],
)
def test_group_that_cannot_be_replayed_gets_the_reason(given: dict[str, Any], why: str) -> None:
    found = answers(given)
    assert [each["error"] for each in found.values()] == [why] * 4
    assert "skew" not in found["range"]


def test_unknown_assignor_gets_the_reason_in_its_row() -> None:
    group = row(members=[member("a", "t")], topics=[topic("t", [0])])
    found = answers(group, "range", "nobody")
    assert found["range"]["error"] is None
    assert "no assignor is called 'nobody'" in found["nobody"]["error"]
