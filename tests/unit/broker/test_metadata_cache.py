"""A broker's metadata cache, fed by UpdateMetadata."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.broker.metadata import BEING_DELETED, MetadataCache
from restow.model import Broker, TopicPartition
from restow.runtime.clock import SystemClock
from restow.wire.between_brokers import EVERYTHING
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import UpdateMetadataRequest
from tests.unit.broker.conversations import run

ONE, TWO = UUID(int=1), UUID(int=2)


def update(
    *topics: tuple[str, UUID, dict[int, tuple[int, ...]]], brokers: tuple[int, ...] = (1, 2, 3), **more: Any
) -> Any:
    """Build a request from replicas by partition; the first leads and all are in sync."""
    request = UpdateMetadataRequest
    return request(
        controller_id=2,
        controller_epoch=1,
        request_type=more.get("request_type", 0),
        topic_states=[
            request.UpdateMetadataTopicState(
                topic_name=name,
                topic_id=topic_id,
                partition_states=[
                    request.UpdateMetadataPartitionState(
                        partition_index=number,
                        leader=more.get("leader", replicas[0]),
                        leader_epoch=5,
                        isr=list(replicas),
                        replicas=list(replicas),
                        offline_replicas=[],
                    )
                    for number, replicas in partitions.items()
                ],
            )
            for name, topic_id, partitions in topics
        ],
        live_brokers=[
            request.UpdateMetadataBroker(
                id=each,
                rack=f"rack-{each}",
                endpoints=[
                    request.UpdateMetadataBroker.UpdateMetadataEndpoint(
                        port=9000 + each, host="localhost", listener="PLAINTEXT", security_protocol=0
                    )
                ],
            )
            for each in brokers
        ],
    )


def cache(*requests: Any) -> MetadataCache:
    made = MetadataCache("cluster", SystemClock())
    for request in requests:
        made.apply(request)
    return made


def test_cache_returns_leaders_brokers_and_names() -> None:
    known = cache(update(("t", ONE, {0: (1, 2), 1: (2, 3)})))
    assert known.controller_id == 2
    assert known.name_of(ONE) == "t"
    assert [each.leader_id for each in known.partitions("t")] == [1, 2]
    assert known.leader_endpoint(TopicPartition("t", 1), "PLAINTEXT") == (2, "localhost", 9002, "rack-2")
    assert known.leader_endpoint(TopicPartition("t", 1), "OTHER") is None
    assert known.at("PLAINTEXT") == known.brokers
    assert known.at("OTHER") == {}
    assert known.placement_brokers() == (Broker(1, "rack-1"), Broker(2, "rack-2"), Broker(3, "rack-3"))
    assert known.partition(TopicPartition("t", 2)) is None
    assert known.partitions("u") == ()


def test_dead_leader_and_replicas_are_hidden_until_they_return() -> None:
    known = cache(update(("t", ONE, {0: (1, 2)})), update(brokers=(2, 3)))
    (told,) = known.topics["t"].partitions
    assert (told.leader_id, told.offline_replicas) == (-1, (1,))
    assert told.error_code == ErrorCode.LEADER_NOT_AVAILABLE
    known.apply(update())
    (told,) = known.topics["t"].partitions
    assert (told.leader_id, told.offline_replicas, told.error_code) == (1, (), 0)


def test_deleted_topic_is_gone_with_its_last_partition() -> None:
    known = cache(update(("t", ONE, {0: (1,), 1: (1,)})))
    assert known.apply(update(("t", ONE, {0: (1,)}), leader=BEING_DELETED)) == (TopicPartition("t", 0),)
    assert [each.partition for each in known.partitions("t")] == [1]
    known.apply(update(("t", ONE, {1: (1,)}), leader=BEING_DELETED))
    assert "t" not in known.topics
    assert known.name_of(ONE) is None
    assert known.apply(update(("t", ONE, {1: (1,)}), leader=BEING_DELETED)) == (TopicPartition("t", 1),)


def test_request_with_everything_ends_what_it_does_not_name() -> None:
    first = update(("t", ONE, {0: (1,), 1: (1,)}), ("u", TWO, {0: (2,)}))
    assert cache(first).apply(update(("t", ONE, {0: (1,)}))) == ()
    known = cache(first)
    gone = known.apply(update(("t", ONE, {0: (1,)}), request_type=EVERYTHING))
    assert gone == (TopicPartition("t", 1), TopicPartition("u", 0))
    assert [each.partition for each in known.partitions("t")] == [0]
    assert known.names() == ("t",)
    assert known.name_of(TWO) is None


def test_recreated_topic_has_no_old_partitions() -> None:
    known = cache(update(("t", ONE, {0: (1,), 1: (1,)})), update(("t", TWO, {0: (2,)})))
    assert [each.leader_id for each in known.partitions("t")] == [2]
    assert (known.name_of(ONE), known.name_of(TWO)) == (None, "t")
    assert len(known.topics["t"].partitions) == 1


@given(st.lists(st.sets(st.integers(1, 3), min_size=1), min_size=1, max_size=6))
def test_client_view_depends_only_on_the_last_live_brokers(lives: list[set[int]]) -> None:
    topic = ("t", ONE, {number: (number % 3 + 1, (number + 1) % 3 + 1) for number in range(6)})
    stepwise = cache(update(topic), *(update(brokers=tuple(alive)) for alive in lives))
    at_once = cache(update(topic, brokers=tuple(lives[-1])))
    assert stepwise.topics["t"].partitions == at_once.topics["t"].partitions
    for version in (0, 6, 8, 12):
        assert stepwise.topics["t"].encode(version) == at_once.topics["t"].encode(version)


def test_until_returns_on_matching_metadata_or_timeout() -> None:
    async def scenario() -> None:
        known = cache()
        there = asyncio.create_task(known.until(lambda: "t" in known.topics, 120))
        never = asyncio.create_task(known.until(lambda: "u" in known.topics, 0.05))
        await asyncio.sleep(0)
        known.apply(update(("x", TWO, {0: (1,)})))
        await asyncio.sleep(0)
        assert not there.done()
        known.apply(update(("t", ONE, {0: (1,)})))
        assert await there
        assert not await never
        assert await known.until(lambda: True, 0)

    run(scenario())


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_internal_topics_are_marked_as_internal(name: str) -> None:
    known = cache(update((name, ONE, {0: (1,)}), ("plain", TWO, {0: (1,)})))
    assert known.topics[name].is_internal
    assert not known.topics["plain"].is_internal
