"""Consumer groups that read what the producer writes, while members come, go, die and freeze.

Every group must read every acknowledged record at least once, commit offsets that never go back, and have one
owner for each partition and generation. Commits and heartbeats of an old generation must be refused. At the
end a member of each group dies for good, and the others must take over its partitions.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.model import TopicPartition
from restow.sim.client import SimClient
from restow.sim.clock import NodeClock
from restow.sim.consumer import SESSION_S, SimConsumer
from restow.sim.group_record import GroupRecord
from restow.sim.reading import read_all
from restow.sim.states import state_of
from restow.sim.subscription import COOPERATIVE
from restow.sim.truth import StoredTruth
from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.plan_draws import pick
from restow.sim.workloads.producing import TOPIC

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from restow.sim.cluster import SimCluster

_ASSIGNORS = ("range", "roundrobin", "sticky", COOPERATIVE)
_MOST_GROUPS, MOST_MEMBERS = 2, 4
_LONGEST_PAUSE_S = 5
_LONGEST_FREEZE_S = 2 * SESSION_S
_LOOK_EVERY_S = 0.5
_CATCH_UP_S = 60.0


class Place:
    """A process that is a member now and then, and its faults."""

    def __init__(
        self, cluster: SimCluster, host: str, record: GroupRecord, assignor: str, static: bool
    ) -> None:
        self.host = host
        self.cluster, self.record, self._assignor = cluster, record, assignor
        self._instance = host if static else None
        self._clock = NodeClock()
        self._client: SimClient | None = None
        self._task: asyncio.Task[None] | None = None
        self.consumer: SimConsumer | None = None
        self.is_gone_for_good = False

    @property
    def is_running(self) -> bool:
        return self._task is not None and not self._task.done()

    def client(self) -> SimClient:
        """Return a new client of this process."""
        self._client = SimClient(self.host, self.cluster.network, self._clock)
        return self._client

    def made_consumer(self) -> SimConsumer:
        """Return a new member."""
        return SimConsumer(
            self.client(), self.cluster.nodes, self.record, TOPIC, self._assignor, self._instance
        )

    def start(self) -> None:
        self._clock = NodeClock()
        self.consumer = self.made_consumer()
        self._task = asyncio.create_task(self.consumer.run())

    def leave(self) -> None:
        if self.consumer is not None:
            self.consumer.is_leaving = True

    def kill(self) -> None:
        """End the process; the coordinator learns of it when the session is over."""
        self.cluster.network.end_process(self.host)
        if self._task is not None:
            self._task.cancel()
        self._task = self.consumer = None

    def freeze(self) -> None:
        self._clock.halt()

    def thaw(self) -> None:
        self._clock.go_on()
        self.cluster.network.deliver(self.host)

    def failure(self) -> BaseException | None:
        """Return why the member ended by itself; None if it did not."""
        task = self._task
        return task.exception() if task is not None and task.done() and not task.cancelled() else None


class GroupOfPlaces:
    """One group and the processes that may be its members."""

    def __init__(self, context: WorkContext, number: int) -> None:
        chance = context.chance(f"group {number}")
        assignor = pick(chance, _ASSIGNORS)
        # A static member that restarts has nothing to revoke, so in a cooperative group a partition that it
        # was to give up would wait for the next rebalance, in Kafka as here.
        static = assignor != COOPERATIVE and not chance.randrange(2)
        self.record: GroupRecord = GroupRecord(f"readers-{number}")
        self.places = [
            Place(context.cluster, f"{self.record.group}-{each}", self.record, assignor, static=static)
            for each in range(1 + chance.randrange(MOST_MEMBERS))
        ]
        kind = "static" if static else "dynamic"
        context.note(f"group {self.record.group}: {len(self.places)} {kind} members, {assignor}")

    def positions(self) -> dict[int, int]:
        """Return the offsets up to which the present owners have read."""
        found: dict[int, int] = {}
        for place in self.places:
            if place.consumer is not None and place.is_running:
                found |= place.consumer.positions
        return found


class Grouping(Workload):
    """A few consumer groups on the producer's topic."""

    name = "groups"
    kind: type[GroupOfPlaces] = GroupOfPlaces

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        self._chance = context.chance("groups")
        self._truth = StoredTruth(context.cluster.store.tree)
        self._groups = [
            self.kind(context, number) for number in range(1 + self._chance.randrange(_MOST_GROUPS))
        ]

    async def start(self) -> None:
        if TOPIC not in self._truth.topics():
            raise ValueError("the workload groups reads what the workload produce writes: draw both")
        for place in self._places():
            place.start()

    async def run(self, until_s: float) -> None:
        while self.context.now_s() < until_s:
            await asyncio.sleep(self._chance.randrange(_LONGEST_PAUSE_S * 1000) / 1000)
            place = pick(self._chance, self._places())
            if place.is_running:
                self._disturb(place)
            else:
                self.context.note(f"{place.host} joins")
                place.start()

    def _disturb(self, place: Place) -> None:
        kind = self._chance.randrange(5)
        if kind == 0:
            self.context.note(f"{place.host} leaves")
            place.leave()
        elif kind == 1:
            self.context.note(f"{place.host} is killed")
            place.kill()
        elif kind == 2:
            lasts_s = self._chance.randrange(int(_LONGEST_FREEZE_S * 1000)) / 1000
            self.context.note(f"{place.host} freezes for {lasts_s:.1f} s")
            place.freeze()
            asyncio.get_running_loop().call_later(lasts_s, place.thaw)

    async def settle(self) -> None:
        for place in self._places():
            place.thaw()
        await self._until_caught_up()
        for group in self._groups:
            if len(group.places) > 1:
                place = pick(self._chance, group.places)
                self.context.note(f"{place.host} is killed for good")
                place.is_gone_for_good = True
                place.kill()
        await self._until_caught_up()

    async def _until_caught_up(self) -> None:
        while not self._has_caught_up():
            self._start_all()
            await asyncio.sleep(_LOOK_EVERY_S)

    def _start_all(self) -> None:
        for place in self._places():
            if not place.is_running and not place.is_gone_for_good:
                place.start()

    def check(self) -> Iterable[str]:
        for group in self._groups:
            yield from group.record.broken
        for place in self._places():
            if (error := place.failure()) is not None:
                yield f"{place.host} failed: {error!r}"

    async def finish(self) -> AsyncIterator[str]:
        until_s = self.context.now_s() + _CATCH_UP_S
        while not self._has_caught_up() and self.context.now_s() < until_s:
            self._start_all()  # a member may have left after it had caught up, and before the last record
            await asyncio.sleep(_LOOK_EVERY_S)
        client = self.context.client("group-check")
        found = await read_all(client, self.context.cluster.nodes, TOPIC, self._partitions())
        for partition, values in found.items():
            for group in self._groups:
                missed = [each for each in values if each not in group.record.read[partition]]
                if missed:
                    yield f"{group.record.group} has not read {len(missed)} records of {TOPIC}-{partition}"
        client.close()
        for place in self._places():
            place.kill()

    def _places(self) -> list[Place]:
        return [place for group in self._groups for place in group.places]

    def _partitions(self) -> list[int]:
        topic = self._truth.topics().get(TOPIC)
        return [] if topic is None else sorted(topic.partitions)

    def _has_caught_up(self) -> bool:
        """Return whether each group has read every partition up to its high watermark."""
        ends = {each: self._end(TopicPartition(TOPIC, each)) for each in self._partitions()}
        return all(group.positions() == ends for group in self._groups)

    def _end(self, partition: TopicPartition) -> int | None:
        state = state_of(self.context.cluster.store.tree, partition)
        node = None if state is None else self.context.cluster.nodes.get(state.leader)
        if node is None or not node.broker.is_running:
            return None
        hosted = node.broker.services.replicas.partition(partition)
        return None if hosted is None else hosted.log.high_watermark
