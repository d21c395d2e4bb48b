"""Random schedules of brokers, links and leaders: acknowledged records stay, replicas become equal."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hypothesis import given, settings
from hypothesis import strategies as st

from restow.wire.batches import scan
from restow.wire.records import parse
from tests.clock import settle
from tests.unit.replication.replicas import LAG_MAX_S, T0, Cluster, run

if TYPE_CHECKING:
    import asyncio

    from restow.wire.produce import Produced

Step: TypeAlias = tuple[str, int, int]
BROKERS = (1, 2, 3)

steps = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "produce",
                "produce",
                "produce alone",
                "read",
                "cut",
                "cut",
                "fall behind",
                "heal",
                "crash",
                "start",
                "lead",
                "wait",
            ]
        ),
        st.sampled_from(BROKERS),
        st.sampled_from(BROKERS),
    ),
    min_size=10,
    max_size=25,
)


class History:
    """A cluster under a schedule, and the responses to its clients."""

    def __init__(self, path: Path) -> None:
        self.cluster = Cluster(path, 3, min_isr=2)
        self.tasks: dict[str, asyncio.Task[Produced]] = {}
        self.seen: dict[int, bytes] = {}
        self.count = 0
        self.too_early: list[str] = []
        self.cluster.states.judge = self.judge

    async def step(self, what: str, one: int, other: int) -> None:
        cluster = self.cluster
        leader = cluster.states.leader[T0][0]
        if what in ("produce", "produce alone", "cut") and other != one:
            one = leader if leader > 0 else one
        if what in ("produce", "produce alone") and one in cluster.brokers:
            value = f"{self.count}"
            self.count += 1
            task = cluster.produce(one, value, acks=-1 if what == "produce" else 1, timeout_ms=20_000)
            if what == "produce":
                self.tasks[value] = task
        elif what == "read" and one in cluster.brokers:
            self.remember((await cluster.consume(one, 0)).records or b"")
        elif what == "cut":
            cluster.cut |= {(each, one) for each in BROKERS}
        elif what == "fall behind" and leader in cluster.brokers:
            cluster.cut.add((one, leader))
            for value in ("missed", "missed, too"):
                await cluster.clock.advance(LAG_MAX_S)
                cluster.produce(leader, value, acks=1)
        elif what == "heal":
            cluster.cut.clear()
        elif what == "crash" and one in cluster.brokers:
            await cluster.stop(one, cleanly=other == one)
            self.broker_gone(one)
        elif what == "start" and one not in cluster.brokers:
            cluster.start(one)
            self.broker_back(one)
        elif what == "lead" and one in cluster.brokers and one in cluster.states.isr[T0]:
            cluster.elect(one, to=[one, other])
        elif what == "wait":
            await cluster.clock.advance(float(one * other))
        await settle()

    def remember(self, records: bytes) -> None:
        """Check that consumers always read the same record at an offset."""
        for position, header in scan(records):
            data = records[position : position + header.size]
            assert self.seen.setdefault(header.base_offset, data) == data

    def judge(self, leader: int, before: tuple[int, ...], after: tuple[int, ...]) -> None:
        """Check that a joining replica, which may lead next, has all acknowledged and earlier records."""
        leading = self.cluster.at(leader)
        needed = max(leading.log.high_watermark, leading.epoch_start_offset)
        for joined in sorted(set(after) - set(before)):
            if joined in self.cluster.brokers and (end := self.cluster.at(joined).log.end_offset) < needed:
                self.too_early.append(f"{joined} joined with {end} of {needed} records")

    def broker_gone(self, broker: int) -> None:
        """Act like a controller: remove it from the ISR unless it is the last, and elect another leader."""
        states = self.cluster.states
        isr = tuple(each for each in states.isr[T0] if each != broker) or states.isr[T0]
        leader = states.leader[T0][0]
        if leader == broker:
            leader = next((each for each in isr if each in self.cluster.brokers), -1)
        self.cluster.elect(leader, isr=isr)

    def broker_back(self, broker: int) -> None:
        states = self.cluster.states
        if states.leader[T0][0] == -1 and broker in states.isr[T0]:
            self.cluster.elect(broker)
        else:
            self.cluster.tell(broker)

    async def calm(self) -> None:
        """Repair everything, and send all brokers the current state."""
        self.cluster.cut.clear()
        for broker in BROKERS:
            if broker not in self.cluster.brokers:
                self.cluster.start(broker)
                self.broker_back(broker)
        for broker in BROKERS:
            self.cluster.tell(broker)
        await self.cluster.clock.advance(60)

    async def check(self) -> None:
        cluster = self.cluster
        assert not self.too_early
        leader = cluster.states.leader[T0][0]
        assert sorted(cluster.at(leader).isr) == list(BROKERS)
        assert cluster.bytes_at(1) == cluster.bytes_at(2) == cluster.bytes_at(3)
        assert {cluster.at(each).log.high_watermark for each in BROKERS} == {cluster.at(1).log.end_offset}
        data = cluster.bytes_at(leader)
        self.remember(data)
        values = {}
        for position, header in scan(data):
            for record in parse(data[position : position + header.size]):
                values[record.offset] = (record.value or b"").decode()
        for value, task in self.tasks.items():
            assert task.done(), f"nobody has told what became of {value}"
            result = await task
            if result.error_code == 0:
                assert values[result.base_offset] == value, f"{value} was acknowledged and is lost"


@settings(max_examples=30, deadline=None)
@given(steps)
def test_acknowledged_records_are_never_lost(schedule: list[Step]) -> None:
    async def scenario(path: Path) -> None:
        history = History(path)
        history.cluster.elect(1, is_new=True)
        await settle()
        for step in schedule:
            await history.step(*step)
        await history.calm()
        await history.check()
        await history.cluster.close()

    with tempfile.TemporaryDirectory() as directory:
        run(scenario(Path(directory)))
