"""Transactional producers, some of them replaced and still at work, and a reader of committed records.

A transaction writes its name to several partitions and commits an offset of a group of its own. Then it is
committed or aborted. What the reader of committed records may see follows from that:

    committed            all its records, each once, in order
    aborted, or open     none of them
    no answer            all or none

A producer that was replaced cannot commit any more. At the end no transaction is open.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from restow.model import TopicPartition
from restow.sim.states import state_of
from restow.sim.transactional import CommittedReader, SimTransactionalProducer, TransactionFailed
from restow.sim.workloads.base import WorkContext, Workload
from restow.sim.workloads.controlling import create_topic
from restow.sim.workloads.plan_draws import pick
from restow.wire.messages import FindCoordinatorRequest, OffsetFetchRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from restow.sim.client import SimClient

TOPIC = "transfers"
_PARTITIONS = 3
_MOST_IDS = 3
_TIMEOUT_MS = 20_000
_READ_EVERY_S = 0.5
_ABORT_ONE_IN = 4
_REPLACE_ONE_IN = 6
_STABLE_S = 60.0


class Outcome(Enum):
    """What a producer knows of a transaction."""

    OPEN = "open"
    ENDING = "being committed"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class Transfer:
    """One transaction: its records by partition, and how it ended."""

    name: bytes
    number: int
    records: dict[int, list[bytes]] = field(default_factory=dict)
    offset: int | None = None
    outcome: Outcome = Outcome.OPEN


class _Id:
    """A transactional id, and the transactions of all its producers in the order of their begin."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.group = f"group of {name}"
        self.producers = 0
        """How many producers have finished their `begin`."""
        self.transfers: list[Transfer] = []

    def new_transfer(self) -> Transfer:
        transfer = Transfer(b"%b/%d" % (self.name.encode(), len(self.transfers)), len(self.transfers))
        self.transfers.append(transfer)
        return transfer


class Transacting(Workload):
    """A few transactional ids on one topic."""

    name = "transactions"
    is_drawn = False

    def __init__(self, context: WorkContext) -> None:
        super().__init__(context)
        self._chance = context.chance("transactions")
        self._ids = [_Id(f"teller-{number}") for number in range(1 + self._chance.randrange(_MOST_IDS))]
        self._client = context.client("transfers")
        self._reader = CommittedReader(context.client("reader"), context.cluster.nodes, TOPIC)
        self._seen: dict[int, int] = {}
        self._broken: list[str] = []
        self._by_record: dict[bytes, Transfer] = {}
        self._zombies: set[asyncio.Task[bool]] = set()
        self._producers: list[SimTransactionalProducer] = []
        self._clients: list[SimClient] = []

    async def start(self) -> None:
        await create_topic(self._client, TOPIC, _PARTITIONS, {})

    async def run(self, until_s: float) -> None:
        reading = asyncio.create_task(self._read_on())
        try:
            await asyncio.gather(*(self._work(each, until_s) for each in self._ids))
        finally:
            reading.cancel()

    async def _read_on(self) -> None:
        while True:
            await self._reader.read_some(range(_PARTITIONS))
            await asyncio.sleep(_READ_EVERY_S)

    async def _work(self, it: _Id, until_s: float) -> None:
        """Work with one producer after another; a replaced one finishes its transaction if it can."""
        while self.context.now_s() < until_s:
            producer = self._new_producer(it)
            try:
                await producer.begin()
            except TransactionFailed:
                continue
            it.producers += 1
            number = it.producers
            self.context.note(f"{it.name} has producer {number}")
            while self.context.now_s() < until_s:
                if not self._chance.randrange(_REPLACE_ONE_IN):
                    zombie = asyncio.create_task(self._transfer(it, producer, number))
                    self._zombies.add(zombie)
                    zombie.add_done_callback(self._zombies.discard)
                    break
                if not await self._transfer(it, producer, number):
                    break
                await asyncio.sleep(self._chance.randrange(1000) / 1000)

    def _new_producer(self, it: _Id) -> SimTransactionalProducer:
        client = self.context.client(f"{it.name}-{len(self._producers)}")
        self._clients.append(client)
        producer = SimTransactionalProducer(client, self.context.cluster.nodes, it.name, _TIMEOUT_MS)
        self._producers.append(producer)
        return producer

    async def _transfer(self, it: _Id, producer: SimTransactionalProducer, number: int) -> bool:
        """Carry out one transaction. Return whether the producer may go on."""
        transfer = it.new_transfer()
        try:
            for _ in range(1 + self._chance.randrange(_PARTITIONS)):
                partition = self._chance.randrange(_PARTITIONS)
                values = [b"%b/%d" % (transfer.name, len(self._by_record))]
                transfer.records.setdefault(partition, []).extend(values)
                self._by_record |= dict.fromkeys(values, transfer)
                await producer.write(TOPIC, partition, values)
                await asyncio.sleep(self._chance.randrange(300) / 1000)
            if self._chance.randrange(2):
                await producer.commit_offset(it.group, TOPIC, 0, transfer.number)
                transfer.offset = transfer.number
            if not self._chance.randrange(_ABORT_ONE_IN):
                await producer.end(commits=False)
                transfer.outcome = Outcome.ABORTED
                return True
            transfer.outcome = Outcome.ENDING
            is_replaced = it.producers > number
            await producer.end(commits=True)
            transfer.outcome = Outcome.COMMITTED
            self.acked += sum(map(len, transfer.records.values()))
            if is_replaced:
                self._broken.append(f"{it.name}: producer {number} committed after another had begun")
        except TransactionFailed as refused:
            was_ending = transfer.outcome is Outcome.ENDING
            transfer.outcome = Outcome.UNKNOWN if was_ending else Outcome.ABORTED
            self.context.note(f"{transfer.name.decode()}: {refused}")
            return False
        return True

    async def settle(self) -> None:
        if self._zombies:
            await asyncio.wait(self._zombies)
        while not all(self._is_stable(each) for each in range(_PARTITIONS)):
            await asyncio.sleep(_READ_EVERY_S)

    def check(self) -> Iterable[str]:
        yield from self._broken
        self._broken.clear()
        for partition, values in self._reader.values.items():
            for value in values[self._seen.get(partition, 0) :]:
                transfer = self._by_record.get(value)
                if transfer is None or transfer.outcome in (Outcome.OPEN, Outcome.ABORTED):
                    state = "nobody's" if transfer is None else transfer.outcome.value
                    yield f"{TOPIC}-{partition} shows {value.decode()}, which is {state}"
            self._seen[partition] = len(values)

    async def finish(self) -> AsyncIterator[str]:
        until_s = self.context.now_s() + _STABLE_S
        while self.context.now_s() < until_s and not self._has_read_all():
            await self._reader.read_some(range(_PARTITIONS))
            await asyncio.sleep(_READ_EVERY_S)
        for what in self.check():
            yield what
        for partition in range(_PARTITIONS):
            if not self._is_stable(partition):
                yield f"{TOPIC}-{partition} still has an open transaction"
        for each in self._ids:
            for what in self._check_records(each):
                yield what
            for what in await self._check_offset(each):
                yield what
        for client in (self._client, *self._clients):
            client.close()

    def _check_records(self, it: _Id) -> Iterable[str]:
        for transfer in it.transfers:
            found = {
                partition: [each for each in self._reader.values.get(partition, ()) if each in set(values)]
                for partition, values in transfer.records.items()
            }
            count = sum(map(len, found.values()))
            whole = found == transfer.records
            name = transfer.name.decode()
            if transfer.outcome is Outcome.COMMITTED and not whole:
                self.lost += max(sum(map(len, transfer.records.values())) - count, 0)
                yield f"{name} is committed, but of {transfer.records} only {found} can be read"
            elif transfer.outcome is Outcome.UNKNOWN and count and not whole:
                yield f"{name} is committed in part: {found} of {transfer.records}"
            elif transfer.outcome in (Outcome.ABORTED, Outcome.OPEN) and count:
                yield f"{name} is {transfer.outcome.value}, but {found} can be read"

    async def _check_offset(self, it: _Id) -> list[str]:
        """Compare the group's offset with those of its last committed transactions."""
        may_be: set[int] = set()
        for transfer in reversed(it.transfers):
            if transfer.offset is None:
                continue
            if transfer.outcome is Outcome.UNKNOWN:
                may_be.add(transfer.offset)
            elif transfer.outcome is Outcome.COMMITTED:
                may_be.add(transfer.offset)
                break
        else:
            may_be.add(-1)
        found = await self._offset_of(it.group)
        return [] if found in may_be else [f"{it.group} has offset {found}, not one of {sorted(may_be)}"]

    async def _offset_of(self, group: str) -> int | None:
        topic = OffsetFetchRequest.OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
        request = OffsetFetchRequest(max_version=7, group_id=group, topics=[topic], require_stable=True)
        until_s = self.context.now_s() + _STABLE_S
        while self.context.now_s() < until_s:
            broker = pick(self._chance, list(self.context.cluster.nodes))
            with suppress(ConnectionError, TimeoutError):
                found = await self._client.ask(
                    FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), broker
                )
                if not found.coordinators[0].error_code:
                    answer = await self._client.ask(request, int(found.coordinators[0].node_id))
                    if not answer.error_code and not answer.topics[0].partitions[0].error_code:
                        return int(answer.topics[0].partitions[0].committed_offset)
            await asyncio.sleep(_READ_EVERY_S)
        return None

    def _has_read_all(self) -> bool:
        return all(
            self._is_stable(each) and self._reader.offsets.get(each, 0) >= self._ends(each)[1]
            for each in range(_PARTITIONS)
        )

    def _is_stable(self, partition: int) -> bool:
        last_stable, end = self._ends(partition)
        return last_stable == end

    def _ends(self, partition: int) -> tuple[int, int]:
        """Return the leader's last stable offset and log end; different ones without a leader."""
        name = TopicPartition(TOPIC, partition)
        state = state_of(self.context.cluster.store.tree, name)
        node = None if state is None else self.context.cluster.nodes.get(state.leader)
        hosted = None
        if node is not None and node.broker.is_running:
            hosted = node.broker.services.replicas.partition(name)
        if hosted is None:
            return -1, -2
        return hosted.log.last_stable_offset, hosted.log.end_offset
