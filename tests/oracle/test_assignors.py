"""Our assignors against Kafka's own, on groups over several rounds."""

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
def test_assignor_result_equals_that_of_kafka(kafka: Oracle, name: str, group: Group) -> None:
    kafkas = ask_kafka(kafka, name, group)
    assert kafkas is not None
    assert judge(name, group, assign(name, **group.question()), kafkas) == []


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
@same_cases
@given(group=groups(), history=st.lists(changes(), max_size=4), follow_kafka=st.booleans())
def test_assignor_is_no_worse_than_kafka_over_several_rounds(
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
    """Return Kafka's result, or if it is invalid, its result for an equivalent plain group.

    Its sticky assignors return unknown partitions to members that claim them, and may treat a member without
    topics as subscribed to everything. They also return a partition to a member that held it in an older
    generation and has since unsubscribed (or fail over it), which cannot be avoided. None stands for that: no
    comparison.
    """
    for asked in (group, replace(group, members=tuple(said_plainly(m, group) for m in group.members))):
        answer = kafka.assign(name, **asked.question())
        if isinstance(answer, dict) and not faults(asked, answer, complete=False):
            return answer
    assert has_stale_claims(group), f"Kafka's answer to an ordinary group is no assignment: {answer}"
    return None


def has_stale_claims(group: Group) -> bool:
    """Return whether a member claims, in an older generation, a topic it no longer subscribes to."""
    latest = max(member.generation or 0 for member in group.members)
    return any(
        partition.topic not in member.topics
        for member in group.members
        if (member.generation or 0) < latest
        for partition in member.owned
    )


def said_plainly(member: Member, group: Group) -> Member:
    """Return the member without invalid claims; one without topics names an unknown one."""
    owned = tuple(p for p in member.owned if p.partition < group.partitions.get(p.topic, 0))
    return replace(member, topics=member.topics or ("nothing",), owned=owned)
