"""`restow groups`: assignments, and refused requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

GROUP = ("groups", "assign", "--topics", "orders=12,payments=6")


def flat(document):
    return {
        (topic, partition): member
        for member, topics in document["assignment"].items()
        for topic, partitions in topics.items()
        for partition in partitions
    }


def test_range_assigns_consecutive_partitions(answer) -> None:
    document = answer(*GROUP, "-a", "range", "--members", "c1,c2,c3")
    assert document["assignment"]["c2"] == {"orders": [4, 5, 6, 7], "payments": [2, 3]}
    assert document["comparison"]["counts"] == {"c1": 6, "c2": 6, "c3": 6}


def test_cooperative_assignor_gives_a_new_member_partitions_in_two_rounds(answer, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"round{number}.json") for number in range(3)]
    answer(*GROUP, "--members", "c1,c2,c3", "--save", paths[0])
    first = answer(*GROUP, "--members", "c1,c2,c3,c4", "--previous", paths[0], "--save", paths[1])
    second = answer(*GROUP, "--members", "c1,c2,c3,c4", "--previous", paths[1], "--save", paths[2])
    assert first["assignment"]["c4"] == {}
    assert first["comparison"]["revoked"] == sum(map(len, first["unassigned"].values())) == 4
    assert first["comparison"]["moved"] == 0
    assert len(flat(second)) == 18
    assert second["unassigned"] == {}
    assert second["comparison"]["revoked"] == 0
    assert (first["generation"], second["generation"]) == (2, 3)
    assert json.loads(Path(paths[2]).read_text()) == second


def test_remaining_members_keep_their_partitions_when_one_leaves(answer, tmp_path: Path) -> None:
    path = str(tmp_path / "before.json")
    before = flat(answer(*GROUP, "--members", "c1,c2,c3", "--save", path))
    document = answer(*GROUP, "--members", "c2,c3", "--previous", path)
    after = flat(document)
    assert all(after[where] == owner for where, owner in before.items() if owner != "c1")
    assert document["comparison"]["moved"] == 6
    assert document["comparison"]["revoked"] == 0


def test_group_file_sets_assignor_topics_and_members(answer, tmp_path: Path) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(
        """
assignor: sticky
partitions: {orders: 4, payments: 2}
members:
  - {id: c1, owned: {orders: [0, 1]}, generation: 3}
  - {id: c2, topics: [orders], owned: [[orders, 2]], generation: 3, rack: a, instance_id: two}
  - {id: c3, topics: [orders], user_data: ""}
"""
    )
    document = answer("groups", "assign", str(file))
    owner = flat(document)
    assert document["assignor"] == "sticky"
    assert document["generation"] == 4
    assert owner["payments", 0] == owner["payments", 1] == "c1"
    assert owner["orders", 2] == "c2"
    assert len(owner) == 6
    assert answer("groups", "assign", str(file), "-a", "range")["assignor"] == "range"
    assert set(answer("groups", "assign", str(file), "--members", "c1,new")["assignment"]) == {"c1", "new"}


def test_group_file_sets_racks(answer, tmp_path: Path) -> None:
    racks = [["b"], ["b"], ["a"], ["a"]]
    group = {
        "assignor": "range",
        "partitions": {"t": 4},
        "members": [{"id": "1", "rack": "a"}, {"id": "2", "rack": "b"}],
        "partition_racks": {"t": racks},
    }
    file = tmp_path / "group.json"
    file.write_text(json.dumps(group))
    assert answer("groups", "assign", str(file))["assignment"] == {"1": {"t": [2, 3]}, "2": {"t": [0, 1]}}


def test_partition_claimed_twice_belongs_to_the_later_generation(answer, tmp_path: Path) -> None:
    file = tmp_path / "group.json"
    claims = [{"id": name, "owned": {"t": [0, 1]}, "generation": when} for name, when in (("a", 1), ("b", 2))]
    file.write_text(json.dumps({"assignor": "sticky", "partitions": {"t": 2}, "members": claims}))
    document = answer("groups", "assign", str(file))
    assert document["comparison"]["balance_score_before"] == 2
    assert document["comparison"]["revoked"] == 1


def test_topic_without_subscribers_is_listed_as_unassigned(answer, invoke, tmp_path: Path) -> None:
    file = tmp_path / "group.json"
    members = [{"id": "a", "topics": ["t"]}]
    file.write_text(json.dumps({"partitions": {"t": 1, "lonely": 2, "empty": 0}, "members": members}))
    assert answer("groups", "assign", str(file))["unassigned"] == {"lonely": [0, 1]}
    assert "nobody subscribes" in invoke("groups", "assign", str(file)).stdout


def test_assignors_lists_all_assignors(answer, invoke) -> None:
    listed = {line["name"]: line for line in answer("groups", "assignors")["assignors"]}
    assert set(listed) >= {"range", "roundrobin", "sticky", "cooperative-sticky", "uniform"}
    assert all(line["about"] for line in listed.values())
    assert listed["cooperative-sticky"]["cooperative"]
    assert not listed["sticky"]["cooperative"]
    assert "cooperative-sticky" in invoke("groups", "assignors").stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "--topics and --members"),
        (("--topics", "t=1"), "--members"),
        (("--topics", "t", "--members", "a"), "TOPIC=PARTITIONS"),
        (("--topics", "t=x", "--members", "a"), "TOPIC=PARTITIONS"),
        (("--topics", "=3", "--members", "a"), "TOPIC=PARTITIONS"),
        (("--topics", "t=1,t=2", "--members", "a"), "twice"),
        (("--topics", "t=" + "9" * 50, "--members", "a"), "1,000,000"),
        (("--topics", "t=600000,u=600000", "--members", "a"), "1,000,000"),
        (("--topics", "t=1", "--members", "a,,b"), "empty name"),
        (("--topics", "t=1", "--members", "a,a"), "twice"),
        (("--topics", "t=1", "--members", "a", "-a", "nonesuch"), "cooperative-sticky"),
    ],
)
def test_assign_refuses_wrong_flags(refused, arguments, says) -> None:
    assert says in refused("groups", "assign", *arguments)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("members: []", "'partitions' is missing"),
        ("partitions: {t: 1}", "'members' is missing"),
        ("partitions: {t: 1}\nmembers: [{topics: [t]}]", "members[0]: 'id' is missing"),
        ("partitions: {t: 1}\nmembers: [{id: 7}]", "members[0].id: expected a string, found a number"),
        ("partitions: {t: 1}\nmembers: {id: a}", "members: expected a list, found a mapping"),
        ("partitions: {t: 1.5}\nmembers: []", "partitions.t: expected a whole number"),
        ("partitions: {t: true}\nmembers: []", "partitions.t: expected a whole number"),
        ("partitions: {t: -1}\nmembers: []", "out of range"),
        ("partitions: {1: 1}\nmembers: []", "put it in quotes"),
        ("partitions: {t: 1}\nmembers: [{id: a, ownd: {}}]", "did you mean 'owned'?"),
        ("partitions: {t: 1}\nmembers: [{id: a, owned: 3}]", "members[0].owned"),
        ("partitions: {t: 1}\nmembers: [{id: a, owned: [[t]]}]", "members[0].owned[0]"),
        ("partitions: {t: 1}\nmembers: [{id: a, owned: {t: [-1]}}]", "members[0].owned.t[0]"),
        ("partitions: {t: 1}\nmembers: [{id: a, user_data: '%%'}]", "not base64"),
        ("partitions: {t: 1}\nmembers: [{id: a, generation: 99999999999}]", "out of range"),
        ("partitions: {t: 1}\nmembers: [{id: a}]\npartition_racks: {t: []}", "one per partition"),
        ("partitions: {t: 1}\nmembers: [{id: a}]\npartition_racks: {u: [[]]}", "not among the topics"),
    ],
)
def test_assign_refuses_a_malformed_group_file(refused, tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "group.yaml"
    file.write_text(text)
    message = refused("groups", "assign", str(file))
    assert says in message
    assert "group.yaml" in message


def test_assign_refuses_a_malformed_previous_round(refused, tmp_path: Path) -> None:
    file = tmp_path / "previous.json"
    file.write_text('{"assignor": "sticky"}')
    assert "'assignment' is missing" in refused(*GROUP, "--members", "a", "--previous", str(file))


def test_assign_fails_when_the_result_cannot_be_saved(invoke, tmp_path: Path) -> None:
    result = invoke(*GROUP, "--members", "a", "--save", str(tmp_path / "no" / "such" / "folder.json"))
    assert result.exit_code == 1
    assert "cannot be written" in result.stderr
    assert result.stdout == ""
