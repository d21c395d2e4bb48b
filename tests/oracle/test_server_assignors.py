"""Our uniform and range against those of Kafka 4's brokers, on groups over several rounds."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from harness.jars import KAFKA_4
from harness.jvm import kafka_jvm
from harness.server_oracle import ServerOracle
from restow.assignors import assign
from tests.conftest import needs_kafka
from tests.judge import Group, judge
from tests.oracle.cases import changes, groups, same_cases
from tests.oracle.server_groups import as_brokers_see

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def broker() -> Iterator[ServerOracle]:
    with ExitStack() as stack:
        with needs_kafka():
            gateway = stack.enter_context(kafka_jvm(KAFKA_4))
        yield ServerOracle(gateway)


@same_cases
@given(group=groups())
def test_range_equals_that_of_kafkas_brokers(broker: ServerOracle, group: Group) -> None:
    group = as_brokers_see(group)
    kafkas = broker.assign("range", partitions=group.partitions, members=group.members)
    assert judge("range", group, assign("range", **group.question()), kafkas) == []


@same_cases
@given(group=groups(), history=st.lists(changes(), max_size=2), follow_kafka=st.booleans())
def test_uniform_is_that_of_kafka_over_several_rounds(
    broker: ServerOracle, group: Group, history: list[Any], follow_kafka: bool
) -> None:
    for generation, change in enumerate((*history, None), 1):
        group = as_brokers_see(group)
        note(f"round {generation}: {group}")
        kafkas = broker.assign("uniform", partitions=group.partitions, members=group.members)
        ours = assign("uniform", **group.question())
        assert judge("uniform", group, ours, kafkas) == []
        if change is not None:
            group = change(group, kafkas if follow_kafka else ours, generation)
