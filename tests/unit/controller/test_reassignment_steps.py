"""Moves step by step: what is true at each label, and what may never be."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from restow.cluster.controller import Election, MoveInProgress, Step, delete_topic, expand_topic
from restow.cluster.store.znodes import PartitionState
from restow.model import ReplicaAssignment, TopicPartition
from restow.wire.between_brokers import LeaderAndIsrRequest, StopReplicaRequest
from tests.unit.controller.moves import (
    LABELS,
    T0,
    alter,
    ask_by_node,
    assignment,
    at_rest,
    catch_up,
    change_isr,
    files_are_right,
    finish,
    moving_cluster,
    request_is_gone,
    turns,
)

if TYPE_CHECKING:
    from tests.unit.controller.fake_cluster import FakeBroker

U = ["U0", "U1", "U2"]
A = ["A1", "A2"]
B = [f"B{number}" for number in range(1, 9)]


def orders(broker: FakeBroker, kind: type) -> list[object]:
    """What a broker was told of the partition, oldest first."""
    return [
        state
        for request in broker.heard
        if isinstance(request, kind)
        for topic in request.topic_states
        for state in topic.partition_states
        if topic.topic_name == "t"
    ]


def test_every_label_is_passed_in_order() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, _, watcher):
            await ask_by_node(cluster, t=(1, 2))
            await cluster.until(lambda: watcher.labels() == U + A)
            await finish(cluster)
            assert watcher.labels() == U + A + B
            assert [step.name for step in LABELS] == U + A + B

    asyncio.run(run())


def test_what_is_true_at_each_label() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, _, watcher):
            moving = ReplicaAssignment((1, 2, 0), adding=(2,), removing=(0,))
            seen: list[str] = []

            async def u0() -> None:
                assert await assignment(cluster) == ReplicaAssignment((0, 1))

            async def u1() -> None:
                assert await assignment(cluster) == moving
                assert (await cluster.state("t", 0)).leader_epoch == 0

            async def a1() -> None:
                assert (await cluster.state("t", 0)).leader_epoch == 1
                await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
                for broker_id in (0, 1, 2):
                    await cluster.until(lambda b=broker_id: cluster.brokers[b].hosted[T0].leader_epoch == 1)
                    told = cluster.brokers[broker_id].hosted[T0]
                    assert (told.replicas, told.adding_replicas, told.removing_replicas) == (
                        [1, 2, 0],
                        [2],
                        [0],
                    )
                    assert told.is_new == (broker_id == 2)

            async def b2() -> None:
                assert await assignment(cluster) == moving
                assert (await cluster.state("t", 0)).isr == (0, 1, 2)

            async def b3() -> None:
                state = await cluster.state("t", 0)
                assert (state.leader, state.isr) == (1, (0, 1, 2))
                await cluster.until(lambda: cluster.brokers[1].hosted[T0].leader == 1)
                assert cluster.brokers[1].hosted[T0].replicas == [1, 2]
                assert T0 in cluster.brokers[0].on_disk
                assert not orders(cluster.brokers[0], StopReplicaRequest)

            async def b4() -> None:
                assert (await cluster.state("t", 0)).isr == (1, 2)
                await cluster.until(lambda: T0 not in cluster.brokers[0].hosted)
                assert T0 in cluster.brokers[0].on_disk

            async def b5() -> None:
                await cluster.until(lambda: T0 not in cluster.brokers[0].on_disk)
                assert await assignment(cluster) == moving

            async def b6() -> None:
                assert await assignment(cluster) == ReplicaAssignment((1, 2))
                assert not await request_is_gone(cluster)

            async def b7() -> None:
                assert await request_is_gone(cluster)

            async def b8() -> None:
                await cluster.until(
                    lambda: all(b.metadata[T0].replicas == [1, 2] for b in cluster.brokers.values())
                )

            for step, check in {
                Step.U0: u0,
                Step.U1: u1,
                Step.A1: a1,
                Step.B2: b2,
                Step.B3: b3,
                Step.B4: b4,
                Step.B5: b5,
                Step.B6: b6,
                Step.B7: b7,
                Step.B8: b8,
            }.items():

                async def look(check=check, step=step) -> None:
                    await check()
                    seen.append(step.name)

                watcher.then[step] = look
            await ask_by_node(cluster, t=(1, 2))
            await finish(cluster)
            assert seen == ["U0", "U1", "A1", "B2", "B3", "B4", "B5", "B6", "B7", "B8"]

    asyncio.run(run())


@pytest.mark.parametrize("target", [(0, 1, 2), (2, 0, 1)], ids=str)
def test_growth_keeps_the_leader(target: tuple[int, ...]) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            assert await alter(controller, target) is None
            assert (await assignment(cluster)).adding == (2,)
            await finish(cluster)
            state = await cluster.state("t", 0)
            assert (state.leader, set(state.isr)) == (0, {0, 1, 2})
            assert await assignment(cluster) == ReplicaAssignment(target)
            assert watcher.labels() == U + A + B

    asyncio.run(run())


@pytest.mark.parametrize(("target", "leader"), [((0, 1), 0), ((2, 0), 0), ((1, 2), 1), ((2, 1), 2)], ids=str)
def test_shrinkage_keeps_the_leader_if_it_may_stay(target: tuple[int, ...], leader: int) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1, 2)) as (cluster, controller, watcher):
            assert await alter(controller, target) is None
            await finish(cluster)
            state = await cluster.state("t", 0)
            assert (state.leader, set(state.isr)) == (leader, set(target))
            assert watcher.labels() == U + B

    asyncio.run(run())


def test_a_new_leader_comes_from_the_target_in_sync() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1, 2)) as (cluster, controller, _):
            await change_isr(cluster, leaves=(1,))
            assert await alter(controller, (1, 2)) is None
            await turns()
            assert (await cluster.state("t", 0)).leader == 0
            await finish(cluster)
            assert (await cluster.state("t", 0)).leader == 1

    asyncio.run(run())


def test_another_order_copies_and_deletes_nothing_and_leads_at_the_next_preferred_election() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1, 2)) as (cluster, controller, watcher):
            assert await alter(controller, (2, 1, 0)) is None
            await cluster.settled()
            assert await assignment(cluster) == ReplicaAssignment((2, 1, 0))
            assert watcher.labels() == U + B
            for broker in cluster.brokers.values():
                assert not orders(broker, StopReplicaRequest)
            assert not any(state.is_new for state in orders(cluster.brokers[2], LeaderAndIsrRequest)[1:])
            assert (await cluster.state("t", 0)).leader == 0
            await controller.elect_leaders(Election.PREFERRED, [T0])
            assert (await cluster.state("t", 0)).leader == 2
            await cluster.settled()

    asyncio.run(run())


def test_the_present_replicas_are_accepted_and_simply_complete() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            assert await alter(controller, (0, 1)) is None
            await ask_by_node(cluster, t=(0, 1))
            await cluster.until(lambda: request_is_gone(cluster))
            assert watcher.labels() == B + B
            await finish(cluster)

    asyncio.run(run())


def test_kafka_15665_complete_only_when_all_of_the_target_are_in_the_isr() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (2, 3, 1))
            await change_isr(cluster, joins=(2,))
            await turns()
            assert watcher.labels() == U + A
            assert T0 in cluster.brokers[0].on_disk
            await change_isr(cluster, joins=(3,), leaves=(1,))
            await turns()
            assert watcher.labels() == U + A
            await change_isr(cluster, joins=(1,))
            await finish(cluster)
            assert watcher.labels() == U + A + B

    asyncio.run(run())


def test_an_isr_change_repeats_no_step_and_says_who_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (2, 3))
            await turns()
            epoch = (await cluster.state("t", 0)).leader_epoch
            with caplog.at_level(logging.INFO):
                await change_isr(cluster, joins=(3,))
                await cluster.until(lambda: "1 of 2 replicas have caught up, missing are [2]" in caplog.text)
            assert watcher.labels() == U + A
            assert (await cluster.state("t", 0)).leader_epoch == epoch

    asyncio.run(run())


def test_a_target_that_falls_behind_in_the_last_moment_is_waited_for_again() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):

            async def fall_behind() -> None:
                watcher.then.clear()
                await change_isr(cluster, leaves=(2,))

            watcher.then[Step.B2] = fall_behind
            await alter(controller, (2, 0))
            await change_isr(cluster, joins=(2,))
            await cluster.until(lambda: watcher.labels()[-2:] == ["A1", "A2"] and "B3" in watcher.labels())
            assert await assignment(cluster) == ReplicaAssignment((2, 0, 1), adding=(2,), removing=(1,))
            await turns()
            assert T0 in cluster.brokers[1].on_disk
            assert not orders(cluster.brokers[1], StopReplicaRequest)
            await finish(cluster)
            assert await assignment(cluster) == ReplicaAssignment((2, 0))

    asyncio.run(run())


def test_kafka_9672_no_isr_has_more_than_the_replicas() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1, 2)) as (cluster, controller, watcher):

            async def compare() -> None:
                found = await assignment(cluster)
                assert set((await cluster.state("t", 0)).isr) <= set(found.replicas)

            watcher.then = dict.fromkeys(Step, compare)
            await alter(controller, (2, 3))
            await finish(cluster)
            await alter(controller, (0,))
            await finish(cluster)
            assert (await cluster.state("t", 0)).isr == (0,)

    asyncio.run(run())


def test_kafka_9212_every_broker_knows_the_epoch_that_the_move_raised() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (0, 1, 2))
            epoch = (await cluster.state("t", 0)).leader_epoch
            assert epoch == 1
            await cluster.until(
                lambda: {b.metadata[T0].leader_epoch for b in cluster.brokers.values()} == {epoch}
            )

    asyncio.run(run())


def test_metadata_shows_replicas_that_are_being_added() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (2, 1))
            await cluster.until(
                lambda: all(b.metadata[T0].replicas == [2, 1, 0] for b in cluster.brokers.values())
            )

    asyncio.run(run())


def test_a_topic_is_deleted_after_its_move_and_not_before() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):
            await alter(controller, (0, 2))
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: controller.is_deleting("t"))
            await turns()
            assert T0 in cluster.brokers[1].on_disk
            assert await cluster.topics() == ("t",)

            async def is_gone() -> bool:
                await catch_up(cluster)
                return not await cluster.topics()

            await cluster.until(is_gone)
            assert "B8" in watcher.labels()
            await cluster.until(lambda: files_are_right(cluster))

    asyncio.run(run())


def test_a_topic_is_deleted_although_the_broker_of_its_move_was_away() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await alter(controller, (0, 2))
            await delete_topic(cluster.store, "t")
            await cluster.until(lambda: controller.is_deleting("t"))
            await cluster.stop_broker(2)
            await cluster.until(lambda: 2 not in cluster.brokers[0].live_brokers)
            await cluster.start_broker(2)

            async def is_gone() -> bool:
                await catch_up(cluster)
                return not await cluster.topics()

            await cluster.until(is_gone)
            await cluster.until(lambda: files_are_right(cluster))

    asyncio.run(run())


def test_kafka_9038_only_the_topic_that_moves_gets_no_partitions() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.create("other", {0: (0, 1)})
            await cluster.settled()
            await alter(controller, (0, 2))
            with pytest.raises(MoveInProgress) as refused:
                await expand_topic(cluster.store, "t", {1: (0, 1)})
            assert refused.value.code.name == "REASSIGNMENT_IN_PROGRESS"
            await expand_topic(cluster.store, "other", {1: (1, 2)})
            await cluster.until(lambda: TopicPartition("other", 1) in cluster.brokers[2].hosted)
            await finish(cluster)
            await expand_topic(cluster.store, "t", {1: (0, 1)})
            await cluster.settled()

    asyncio.run(run())


def test_partitions_that_come_while_a_move_is_written_stay() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, watcher):

            async def expand() -> None:
                watcher.then.clear()
                await expand_topic(cluster.store, "t", {1: (1, 2)})

            watcher.then[Step.U0] = expand
            await alter(controller, (0, 2))
            await cluster.until(lambda: TopicPartition("t", 1) in cluster.brokers[2].hosted)
            await finish(cluster)
            assert await assignment(cluster, TopicPartition("t", 1)) == ReplicaAssignment((1, 2))

    asyncio.run(run())


def test_a_partition_that_never_had_a_leader_gets_one_by_its_move() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.stop_broker(2)
            await cluster.stop_broker(3)
            await cluster.until(lambda: cluster.brokers[0].live_brokers == {0, 1, 4})
            await cluster.create("dark", {0: (2, 3)})
            dark = TopicPartition("dark", 0)

            async def moved() -> bool:
                return await alter(controller, (1, 0), dark) is None

            await cluster.until(moved)
            await cluster.until(lambda: dark in cluster.brokers[1].hosted)
            state = await cluster.state("dark", 0)
            assert (state.leader, state.isr) == (1, (1, 0))
            assert await at_rest(cluster)

    asyncio.run(run())


def test_the_topic_of_groups_moves_like_any_other() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.create("__consumer_offsets", {0: (0, 1)})
            await cluster.settled()
            assert await alter(controller, (2,), TopicPartition("__consumer_offsets", 0)) is None
            await finish(cluster)
            assert (await cluster.state("__consumer_offsets", 0)).leader == 2

    asyncio.run(run())


def test_the_move_of_a_topic_removed_by_hand_is_forgotten() -> None:
    async def run() -> None:
        async with moving_cluster((0, 1)) as (cluster, controller, _):
            await cluster.create("u", {0: (0, 1)})
            await cluster.settled()
            await ask_by_node(cluster, t=(0, 2), u=(0, 3))
            await cluster.until(lambda: T0 in cluster.brokers[2].hosted)
            for path in (PartitionState.path("t", 0), *reversed(PartitionState.parents("t", 0))):
                await cluster.store.delete(path)
            await cluster.store.delete("/brokers/topics/t")

            async def is_over() -> bool:
                await catch_up(cluster)
                return await request_is_gone(cluster)

            await cluster.until(is_over)
            assert await controller.list_reassignments(None) == {}
            assert await assignment(cluster, TopicPartition("u", 0)) == ReplicaAssignment((0, 3))

    asyncio.run(run())
