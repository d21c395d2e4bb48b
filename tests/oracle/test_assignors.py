"""Our assignors against Kafka's own, on groups that live through several rounds."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from restow.assignors import assign
from tests.judge import Group, faults, judge
from tests.oracle.cases import changes, groups, same_cases

if TYPE_CHECKING:
    from harness.oracle import Oracle
    from restow.model import Member, TopicPartition

pytestmark = pytest.mark.jvm


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@same_cases
@given(group=groups())
def test_deals_exactly_as_kafka_does(kafka: Oracle, name: str, group: Group) -> None:
    kafkas = ask_kafka(kafka, name, group)
    assert kafkas is not None
    assert judge(name, group, assign(name, **group.question()), kafkas) == []


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@same_cases
@given(group=groups(), history=st.lists(changes(), max_size=4), follow_kafka=st.booleans())
def test_no_round_of_a_living_group_is_worse_than_kafkas(
    kafka: Oracle, name: str, group: Group, history: list[Any], follow_kafka: bool
) -> None:
    for generation, change in enumerate((*history, None), 1):
        note(f"round {generation}: {group}")
        kafkas = ask_kafka(kafka, name, group)
        ours = assign(name, **group.question())
        assert judge(name, group, ours, ours if kafkas is None else kafkas) == []
        follow_kafka = not follow_kafka
        if change is not None:
            group = change(group, kafkas if kafkas and follow_kafka else ours, generation)


def ask_kafka(kafka: Oracle, name: str, group: Group) -> dict[str, list[TopicPartition]] | None:
    """Kafka's answer; where that is no valid one, its answer to the same said in an ordinary way.

    Its sticky assignors hand partitions that do not exist back to members that claim them, and may
    take a member that subscribes to nothing for one that subscribes to everything. There also is no
    way to keep them from handing a partition back to a member that held it in an older generation
    and has unsubscribed since (or from breaking over it). None stands for that: no measure.
    """
    for asked in (group, replace(group, members=tuple(said_plainly(m, group) for m in group.members))):
        answer = kafka.assign(name, **asked.question())
        if isinstance(answer, dict) and not faults(asked, answer, complete=False):
            return answer
    assert has_stale_claims(group), f"Kafka's answer to an ordinary group is no assignment: {answer}"
    return None


def has_stale_claims(group: Group) -> bool:
    """Whether somebody claims, in an older generation than others', what it no longer subscribes to."""
    latest = max(member.generation or 0 for member in group.members)
    return any(
        partition.topic not in member.topics
        for member in group.members
        if (member.generation or 0) < latest
        for partition in member.owned
    )


def said_plainly(member: Member, group: Group) -> Member:
    """The member without claims that cannot be; one without topics names one that nobody knows."""
    owned = tuple(p for p in member.owned if p.partition < group.partitions.get(p.topic, 0))
    return replace(member, topics=member.topics or ("nothing",), owned=owned)
