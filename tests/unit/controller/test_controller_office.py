"""Controller elections, depositions, failures and re-elections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, cast

import pytest

from restow.cluster.controller import ControllerStep, NotController, delete_topic
from restow.cluster.store import StoreUnavailable
from restow.cluster.store.znodes import ControllerEpoch, ControllerZNode
from restow.model import TopicPartition
from tests.unit.controller.fake_cluster import fake_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.store import Operation, Results, Store

T0 = TopicPartition("t", 0)


def test_election_writes_the_znodes_of_kafka() -> None:
    async def run() -> None:
        async with fake_cluster(1) as cluster:
            controller = await cluster.start_controller(0)
            node = await cluster.store.get(ControllerZNode.PATH)
            assert ControllerZNode.decode(node.data).broker_id == 0
            assert node.stat.ephemeral_owner == cluster.brokers[0].session.session_id
            epoch = await cluster.store.get(ControllerEpoch.PATH)
            assert (epoch.data, epoch.stat.version) == (b"1", 1)
            assert controller.is_active
            assert controller.epoch == 1

    asyncio.run(run())


def test_election_has_one_winner_and_repeats_when_it_leaves() -> None:
    async def run() -> None:
        async with fake_cluster(5) as cluster:
            await asyncio.gather(*(cluster.start_controller(each) for each in range(5)))
            for epoch in range(1, 6):
                await cluster.until(lambda: sum(each.is_active for each in cluster.controllers) == 1)
                active = next(each for each in cluster.controllers if each.is_active)
                assert active.epoch == epoch
                await active.stop()
                assert not active.is_active
                cluster.controllers.remove(active)

    asyncio.run(run())


def test_controller_ends_its_term_when_its_session_expires() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            first = await cluster.start_controller(0)
            second = await cluster.start_controller(1)
            await cluster.stop_broker(0)
            await cluster.until(lambda: second.is_active)
            assert not first.is_active
            assert first.epoch == -1
            with pytest.raises(NotController):
                await first.elect_missing_leaders()
            await cluster.create("t", {0: (1,)})
            await cluster.settled()

    asyncio.run(run())


def test_controller_resigns_and_stands_again_when_the_epoch_was_raised() -> None:
    async def run() -> None:
        async with fake_cluster(1) as cluster:
            controller = await cluster.start_controller(0)
            await cluster.store.set(ControllerEpoch.PATH, b"41")
            await cluster.create("t", {0: (0,)})
            await cluster.until(lambda: controller.epoch == 42 and controller.is_active)
            await cluster.settled()
            assert (await cluster.state("t", 0)).controller_epoch == 42

    asyncio.run(run())


def test_removed_controller_znode_causes_a_new_election() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            await cluster.start_controller(0)
            await cluster.start_controller(1)
            await cluster.store.delete(ControllerZNode.PATH)
            await cluster.until(lambda: [c.epoch for c in cluster.controllers if c.is_active] == [2])

    asyncio.run(run())


def test_failed_event_ends_the_term_and_the_next_finishes_the_work() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            mistakes = [ControllerStep.C2]

            async def mistake(step: ControllerStep) -> None:
                if step in mistakes:
                    mistakes.remove(step)
                    raise ZeroDivisionError("a mistake")

            controller = await cluster.start_controller(0, at=mistake)
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            assert T0 in cluster.brokers[1].metadata
            assert mistakes == []
            assert controller.epoch == 2

    asyncio.run(run())


def test_failed_sender_ends_the_term_and_the_next_finishes_the_work() -> None:
    async def run() -> None:
        async with fake_cluster(2) as cluster:
            mistakes = [KeyError("a mistake"), ConnectionResetError(), TimeoutError()]

            class Channel:
                async def call(self, broker_id: int, request: Any) -> Any:
                    if mistakes:
                        raise mistakes.pop()
                    return await cluster.call(broker_id, request)

            controller = await cluster.start_controller(0, channel=Channel())
            await cluster.create("t", {0: (0, 1)})
            await cluster.settled()
            assert T0 in cluster.brokers[1].metadata
            assert controller.epoch == 2

    asyncio.run(run())


class Forgetful:
    """A session whose nth change reaches the store, but whose response is lost."""

    def __init__(self, store: Store, fail_at: int) -> None:
        self._store = store
        self._left = fail_at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise StoreUnavailable("the answer was lost", path=ControllerEpoch.PATH)

    async def multi(self, operations: Sequence[Operation]) -> Results:
        answer = await self._store.multi(operations)
        self._count()
        return answer

    async def multi_each(self, transactions: Sequence[Sequence[Operation]]) -> Any:
        answers = await self._store.multi_each(transactions)
        try:
            self._count()
        except StoreUnavailable as error:
            return tuple(error for _ in answers)
        return answers


@pytest.mark.parametrize("fail_at", range(2, 8))
def test_change_with_lost_response_happens_exactly_once(fail_at: int) -> None:
    async def run() -> None:
        async with fake_cluster(3) as cluster:
            store = Forgetful(cluster.brokers[2].session, fail_at)
            await cluster.start_controller(2, store=cast("Store", store))
            await cluster.create("t", {0: (0, 1), 1: (1, 0)})
            await cluster.create("leaving", {0: (0, 1)})
            await cluster.until(lambda: TopicPartition("leaving", 0) in cluster.brokers[1].metadata)
            await delete_topic(cluster.store, "leaving")
            await cluster.stop_broker(1)
            await cluster.start_broker(1)
            await cluster.settled()
            assert await cluster.topics() == ("t",)
            assert cluster.brokers[0].on_disk == {T0, TopicPartition("t", 1)}
            assert store._left <= 0

    asyncio.run(run())


def test_stopping_controller_fails_waiting_requests() -> None:
    async def run() -> None:
        async with fake_cluster(1) as cluster:
            reached = asyncio.Event()

            async def stand_still(step: ControllerStep) -> None:
                if step is ControllerStep.S1:
                    reached.set()
                    await asyncio.Event().wait()

            controller = await cluster.start_controller(0, at=stand_still)
            asked = asyncio.create_task(controller.handle_controlled_shutdown(0, cluster.brokers[0].epoch))
            await reached.wait()
            await controller.stop()
            with pytest.raises(NotController):
                await asked

    asyncio.run(run())
