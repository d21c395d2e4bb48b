"""Groups on the pages: lag in messages and time, members and what they own, of both protocols."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from restow.client import GroupLag, PartitionLag
from restow.client.values import ConsumerGroup, GroupMember
from restow.model import TopicPartition
from restow.sizes import human_duration
from restow.ui.app import application
from restow.ui.groups import GroupsLook
from restow.ui.recorded import read_groups
from tests.unit.ui.visitor import Visitor, a_site

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = [TopicPartition("orders", number) for number in range(3)]
MEMBERS = (
    GroupMember(id="m-1", client_id="app", host="/10.0.0.1", rack="a", held=(ORDERS[0],)),
    GroupMember(id="m-2", client_id="<b>", host="/10.0.0.2", instance_id="static-2", held=(ORDERS[1],)),
)
BILLING = GroupLag(
    group=ConsumerGroup(name="billing", state="Stable", assignor="range", members=MEMBERS),
    coordinator=1,
    partitions=(
        PartitionLag(partition=ORDERS[0], committed=40, latest=100, lag_ms=90_000, member=MEMBERS[0]),
        PartitionLag(partition=ORDERS[1], committed=50, latest=50, lag_ms=0, member=MEMBERS[1]),
    ),
)
MODERN = GroupLag(
    group=ConsumerGroup(name="modern", state="Empty", protocol="consumer", assignor="uniform"),
    coordinator=2,
    partitions=(PartitionLag(partition=ORDERS[2], committed=60, latest=70),),
)
HIDDEN = GroupLag(
    group=ConsumerGroup(name="hidden", state="Unknown"), coordinator=3, error="no DESCRIBE on <it>"
)


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    site = a_site(tmp_path)
    look = GroupsLook(at_ms=1_790_000_000_000, groups=(BILLING, HIDDEN, MODERN))
    site.watch.last = replace(site.watch.last, groups=look)
    return Visitor(application(site)).enter()


def test_groups_of_both_protocols_are_listed_by_lag(visitor: Visitor) -> None:
    listed = visitor.get("/groups?sort=lag").text
    assert re.findall(r"/group\?name=(\w+)'", listed) == ["billing", "modern", "hidden"]
    assert "<td class='l'>consumer</td><td class='l'>empty</td>" in listed
    assert f"<td class=''>{human_duration(90)}</td>" in listed
    assert "1 of 3 groups" in visitor.get("/groups?search=ILL").text


def test_group_shows_its_members_and_what_they_own(visitor: Visitor) -> None:
    text = visitor.get("/group?name=billing").text
    for words in (
        "static-2 (m-2)",
        "&lt;b&gt;",
        "coordinated by broker",
        ">60</td>",
        "orders-0",
        human_duration(90),
    ):
        assert words in text
    assert "no DESCRIBE on &lt;it&gt;" in visitor.get("/group?name=hidden").text
    assert visitor.get("/group?name=nobody").status == 404


def test_lag_is_measured_and_told_to_programs(visitor: Visitor) -> None:
    text = visitor.get("/metrics").text
    assert 'restow_group_lag_messages{group="billing"} 60' in text
    assert 'restow_group_lag_seconds{group="billing"} 90' in text
    assert 'restow_group_lag_seconds{group="modern"}' not in text
    [billing] = visitor.get("/api/v1/groups?search=billing").document["groups"]
    assert (billing["lag"], billing["lag_ms"], billing["protocol"]) == (60, 90_000, "classic")


def test_recorded_groups_are_read_back(visitor: Visitor, tmp_path: Path) -> None:
    told = visitor.get("/api/v1/groups").document
    told["groups"] = [each for each in told["groups"] if each["error"] is None]
    (tmp_path / "groups.json").write_text(json.dumps(told), encoding="utf-8")
    assert read_groups(tmp_path / "groups.json").groups == (BILLING, MODERN)
