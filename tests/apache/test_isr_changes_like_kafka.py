"""AlterPartition at our controller beside Apache Kafka's 3.9: the same answers to the same requests.

`docs/controller.md` lists the differences.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from restow.cluster.store.znodes import BrokerRegistration, TopicZNode
from restow.wire.messages import (
    AllocateProducerIdsRequest,
    AlterPartitionRequest,
    ControlledShutdownRequest,
)
from tests.apache.test_controller_like_kafka import Pair, pair
from tests.apache.two_sides import Conversation

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["pair"]
pytestmark = pytest.mark.apache

SHUT_DOWN, ALTER_PARTITION, ALLOCATE = 7, 56, 67
VERSIONS = range(4)
TOPIC = "isr"
NO_TOPIC_ID = UUID(int=77)


class Leader(Conversation):
    """Sends what a leader, and a broker, asks the controller."""

    async def epoch_of(self, broker: int) -> int:
        """Return the epoch of a broker's registration."""
        path = BrokerRegistration.path(broker + self.side.shift)
        return (await self.side.store.get(path)).stat.czxid

    async def topic_id(self, name: str) -> UUID:
        node = TopicZNode.decode((await self.side.store.get(TopicZNode.path(name))).data, name)
        assert node.topic_id is not None
        return UUID(bytes=urlsafe_b64decode(node.topic_id + "=="))

    async def alter(self, version: int, isr: Sequence[int], **wrong: Any) -> Any:
        """Ask for an ISR of partition 0, led by broker 0. Return the answer's codes and its state."""
        _, _, leader_epoch, partition_epoch = await self.state(TOPIC, 0)
        broker = wrong.get("broker", 0)
        make = AlterPartitionRequest.TopicData
        state = make.PartitionData.BrokerState
        partition = make.PartitionData(
            partition_index=wrong.get("partition", 0),
            leader_epoch=leader_epoch + wrong.get("leader_epoch", 0),
            new_isr=self._outward(isr),
            new_isr_with_epochs=[state(broker_id=each) for each in self._outward(isr)],
            leader_recovery_state=wrong.get("recovery", 0),
            partition_epoch=partition_epoch + wrong.get("partition_epoch", 0),
        )
        topic = make(
            topic_name=wrong.get("topic_name", TOPIC),
            topic_id=wrong.get("topic_id") or await self.topic_id(TOPIC),
            partitions=[partition],
        )
        known = await self.epoch_of(broker) if broker < 3 else 0
        body = AlterPartitionRequest(
            broker_id=broker + self.side.shift,
            broker_epoch=known + wrong.get("broker_epoch", 0),
            topics=[topic],
        )
        answer = await self.exchange(ALTER_PARTITION, version, body)
        return answer.error_code, [
            (
                each.partition_index,
                each.error_code,
                None if each.error_code else each.leader_id - self.side.shift,
                None if each.error_code else each.leader_epoch,
                frozenset(self._inward(each.isr)),
                each.partition_epoch,
            )
            for found in answer.topics
            for each in found.partitions
        ]

    async def allocate(self, broker: int, *, epoch: int = 0) -> Any:
        """Ask for producer ids. Return the code and the size of the block."""
        known = await self.epoch_of(broker) if broker < 3 else 0
        body = AllocateProducerIdsRequest(broker_id=broker + self.side.shift, broker_epoch=known + epoch)
        answer = await self.exchange(ALLOCATE, 0, body)
        return answer.error_code, answer.producer_id_start % 1000, answer.producer_id_len


WRONG: dict[str, dict[str, Any]] = {
    "an older leader epoch": {"leader_epoch": -1},
    "a newer leader epoch": {"leader_epoch": 1},
    "an older partition epoch": {"partition_epoch": -1},
    "a newer partition epoch": {"partition_epoch": 1},
    "another broker epoch": {"broker_epoch": 1},
    "an unknown broker": {"broker": 8},
    "an unknown partition": {"partition": 9},
}


def test_controller_answers_isr_changes_like_kafka(pair: Pair) -> None:
    async def story(side: Conversation) -> Any:
        leader = Leader(side.side)
        assert (await leader.create(TOPIC, by_hand={0: (0, 1)}))[0] == 0
        await leader.until((0, {0, 1}), TOPIC)
        told: dict[Any, Any] = {}
        for version in VERSIONS:
            for why, wrong in WRONG.items():
                told[version, why] = await leader.alter(version, (0,), **wrong)
            if version:  # version 0 has no such field
                told[version, "recovering"] = await leader.alter(version, (0,), recovery=1)
            told[version, "as it is"] = await leader.alter(version, (0, 1))
            told[version, "as it is, a later epoch"] = await leader.alter(version, (0, 1), partition_epoch=-1)
            told[version, "a dead broker"] = await leader.alter(version, (0, 1, 8))
        told["no name"] = await leader.alter(1, (0,), topic_name="nobody")
        told["no id"] = await leader.alter(3, (0,), topic_id=NO_TOPIC_ID)
        told["untouched"] = await leader.state(TOPIC, 0)
        told["done"] = await leader.alter(3, (0,))
        told["written"] = await leader.state(TOPIC, 0)
        assert await leader.delete(TOPIC) == [(TOPIC, 0)]
        await leader.until_deleted(TOPIC)
        return told

    told = pair.both(story)
    assert told["untouched"] == (0, {0, 1}, 0, 0)
    assert told["written"] == (0, {0}, 0, 1)


def test_controller_allocates_producer_ids_like_kafka(pair: Pair) -> None:
    async def story(side: Conversation) -> Any:
        leader = Leader(side.side)
        return [
            await leader.allocate(1),
            await leader.allocate(1),
            await leader.allocate(1, epoch=1),
            await leader.allocate(8),
        ]

    assert pair.both(story)[0] == (0, 0, 1000)


@pytest.mark.full
def test_controller_refuses_isr_with_a_broker_that_shuts_down_like_kafka(pair: Pair) -> None:
    async def story(side: Conversation) -> Any:
        leader = Leader(side.side)
        assert (await leader.create(TOPIC, by_hand={0: (0, 1, 2)}))[0] == 0
        await leader.until((0, {0, 1, 2}), TOPIC)
        body = ControlledShutdownRequest(broker_id=1 + side.side.shift, broker_epoch=await leader.epoch_of(1))
        assert (await leader.exchange(SHUT_DOWN, 3, body)).error_code == 0
        await leader.until((0, {0, 2}), TOPIC)
        told = [await leader.alter(version, (0, 1, 2)) for version in VERSIONS]
        told.append(await leader.alter(3, (0,)))
        await side.side.stop(1)
        await side.side.start(1)
        assert await leader.delete(TOPIC) == [(TOPIC, 0)]
        await leader.until_deleted(TOPIC)
        return told

    told = pair.both(story)
    assert [found[1][0][1] for found in told] == [55, 55, 107, 107, 0]
