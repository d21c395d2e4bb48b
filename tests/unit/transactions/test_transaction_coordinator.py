"""The transaction coordinator: epochs, fencing, timeouts, expiry, failed writes and takeovers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.tasks import Tasks
from restow.cluster.transactions import (
    EndOfTransaction,
    ProducerIdAndEpoch,
    TransactionConfig,
    TransactionCoordinator,
)
from restow.cluster.transactions.records import decode_value
from restow.cluster.transactions.states import TransactionState
from restow.cluster.transactions.transaction import LARGEST_EPOCH
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.clock import HandClock, settle
from tests.unit.groups.workbench import MemoryJournal, run

if TYPE_CHECKING:
    from collections.abc import Iterable

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MINUTE_MS = 60_000
NONE = ErrorCode.NONE


class Markers:
    """Leaders that take markers; `codes` are their answers by partition."""

    def __init__(self) -> None:
        self.sent: list[tuple[EndOfTransaction, frozenset[TopicPartition]]] = []
        self.codes: dict[TopicPartition, ErrorCode] = {}

    async def send(
        self, end: EndOfTransaction, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        asked = frozenset(partitions)
        self.sent.append((end, asked))
        return {each: self.codes.get(each, NONE) for each in asked}


class Bench:
    """A coordinator of one partition, with its clock, journal and leaders."""

    def __init__(self, journal: MemoryJournal | None = None, **config: Any) -> None:
        self.clock = HandClock(1_700_000_000.0)
        self.journal = journal or MemoryJournal()
        self.markers = Markers()
        self.tasks = Tasks()
        self._last_id = 0
        self.coordinator = TransactionCoordinator(
            clock=self.clock,
            partition_for=lambda _: 0,
            journal=self.journal,
            config=TransactionConfig(**config),
            new_producer_id=self._new_id,
            markers=self.markers,
            tasks=self.tasks,
        )

    async def _new_id(self) -> int:
        self._last_id += 1
        return self._last_id

    async def __aenter__(self) -> Bench:
        await self.coordinator.load(0, 3)
        self.coordinator.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.journal.release()
        await self.coordinator.close()
        await self.tasks.close()

    async def init(self, expected: ProducerIdAndEpoch | None = None) -> ProducerIdAndEpoch:
        reply = await self.coordinator.init_producer_id("x", MINUTE_MS, expected)
        assert reply.error is NONE, reply
        return ProducerIdAndEpoch(reply.producer_id, reply.producer_epoch)

    async def begin(self, *partitions: TopicPartition) -> ProducerIdAndEpoch:
        producer = await self.init()
        assert await self.coordinator.add_partitions("x", producer, partitions or (T0,)) is NONE
        return producer

    def state(self) -> str:
        return self.coordinator.describe("x").state

    def written(self) -> list[TransactionState | None]:
        values = (value for _, value in self.journal.logs[0])
        return [None if value is None else decode_value(value).state for value in values]


def test_end_is_written_before_the_markers_and_completed_after_them() -> None:
    async def test() -> None:
        async with Bench() as bench:
            producer = await bench.begin(T0, T1)
            assert await bench.coordinator.end("x", producer, commits=True) is NONE
            await settle()
            end = EndOfTransaction(
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch,
                coordinator_epoch=3,
                commits=True,
            )
            assert bench.markers.sent == [(end, frozenset({T0, T1}))]
            s = TransactionState
            assert bench.written() == [s.EMPTY, s.ONGOING, s.PREPARE_COMMIT, s.COMPLETE_COMMIT]
            assert bench.state() == "CompleteCommit"

    run(test)


def test_markers_are_sent_again_until_all_leaders_have_them() -> None:
    async def test() -> None:
        async with Bench() as bench:
            bench.markers.codes[T1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            producer = await bench.begin(T0, T1)
            await bench.coordinator.end("x", producer, commits=False)
            await settle()
            assert bench.state() == "PrepareAbort"
            assert await bench.coordinator.add_partitions("x", producer, (T0,)) is (
                ErrorCode.CONCURRENT_TRANSACTIONS
            )
            await bench.clock.advance(1)
            del bench.markers.codes[T1]
            await bench.clock.advance(1)
            assert bench.state() == "CompleteAbort"
            assert {partitions for _, partitions in bench.markers.sent[1:]} == {frozenset({T1})}

    run(test)


@pytest.mark.parametrize("state", [TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT])
def test_new_coordinator_goes_on_with_an_end_that_was_written(state: TransactionState) -> None:
    async def test() -> None:
        async with Bench() as bench:
            bench.markers.codes[T0] = ErrorCode.NOT_LEADER_OR_FOLLOWER
            producer = await bench.begin()
            await bench.coordinator.end("x", producer, commits=state is TransactionState.PREPARE_COMMIT)
            async with Bench(bench.journal) as other:
                await settle()
                (sent,) = other.markers.sent
                assert sent[0].commits == (state is TransactionState.PREPARE_COMMIT)
                assert other.state().startswith("Complete")

    run(test)


def test_coordinator_that_was_replaced_sends_no_more_markers() -> None:
    async def test() -> None:
        async with Bench() as bench:
            bench.markers.codes[T0] = ErrorCode.TRANSACTION_COORDINATOR_FENCED
            producer = await bench.begin()
            await bench.coordinator.end("x", producer, commits=True)
            await bench.clock.advance(60)
            assert len(bench.markers.sent) == 1
            assert bench.written()[-1] is TransactionState.PREPARE_COMMIT

    run(test)


def test_transaction_is_aborted_with_a_higher_epoch_when_its_time_is_up() -> None:
    async def test() -> None:
        async with Bench() as bench:
            producer = await bench.begin()
            await bench.clock.advance(55)
            assert bench.state() == "Ongoing"
            await bench.clock.advance(20)
            assert bench.state() == "CompleteAbort"
            assert bench.markers.sent[0][0].producer_epoch == producer.epoch + 1
            code = await bench.coordinator.end("x", producer, commits=True)
            assert code is ErrorCode.PRODUCER_FENCED

    run(test)


def test_epoch_that_could_not_be_written_is_not_raised_again() -> None:
    async def test() -> None:
        async with Bench() as bench:
            producer = await bench.begin()
            bench.journal.errors = [ErrorCode.NOT_ENOUGH_REPLICAS] * 3
            for _ in range(3):
                reply = await bench.coordinator.init_producer_id("x", MINUTE_MS)
                assert reply.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
            reply = await bench.coordinator.init_producer_id("x", MINUTE_MS)
            assert reply.error is ErrorCode.CONCURRENT_TRANSACTIONS
            await settle()
            assert bench.markers.sent[0][0].producer_epoch == producer.epoch + 1
            assert await bench.init() == ProducerIdAndEpoch(producer.producer_id, producer.epoch + 2)

    run(test)


def test_failed_write_leaves_the_state_as_it_was() -> None:
    async def test() -> None:
        async with Bench() as bench:
            producer = await bench.begin()
            bench.journal.errors = [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_LEADER_OR_FOLLOWER]
            codes = [await bench.coordinator.end("x", producer, commits=True) for _ in range(3)]
            assert codes == [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, NONE]

    run(test)


def test_others_are_told_to_come_again_while_a_state_is_written() -> None:
    async def test() -> None:
        async with Bench() as bench:
            producer = await bench.begin()
            bench.journal.hold()
            ending = asyncio.ensure_future(bench.coordinator.end("x", producer, commits=True))
            await settle()
            again = ErrorCode.CONCURRENT_TRANSACTIONS
            assert await bench.coordinator.end("x", producer, commits=True) is again
            assert await bench.coordinator.add_partitions("x", producer, (T1,)) is again
            assert (await bench.coordinator.init_producer_id("x", MINUTE_MS)).error is again
            bench.journal.release()
            assert await ending is NONE

    run(test)


def test_exhausted_epochs_give_a_new_producer_id() -> None:
    async def test() -> None:
        async with Bench() as bench:
            last = await bench.init()
            while last.epoch < LARGEST_EPOCH - 1:
                last = await bench.init()
            rotated = await bench.init(last)
            assert rotated == ProducerIdAndEpoch(last.producer_id + 1, 0)
            assert await bench.init(last) == ProducerIdAndEpoch(rotated.producer_id, 0)
            reply = await bench.coordinator.init_producer_id("x", MINUTE_MS, ProducerIdAndEpoch(77, 0))
            assert reply.error is ErrorCode.PRODUCER_FENCED

    run(test)


def test_unused_id_expires_with_a_tombstone() -> None:
    async def test() -> None:
        async with Bench(id_expiration_ms=1_000_000, id_expiration_interval_ms=10_000) as bench:
            producer = await bench.begin()
            await bench.clock.advance(30)
            assert bench.state() == "Ongoing"
            await bench.coordinator.end("x", producer, commits=True)
            await bench.clock.advance(990)
            assert bench.state() == "CompleteCommit"
            await bench.clock.advance(20)
            assert bench.coordinator.describe("x").error is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
            assert bench.written()[-1] is None
            code = await bench.coordinator.add_partitions("x", producer, (T0,))
            assert code is ErrorCode.INVALID_PRODUCER_ID_MAPPING

    run(test)


def test_requests_are_refused_before_loading_and_after_unloading() -> None:
    async def test() -> None:
        async with Bench() as bench:
            producer = await bench.begin()
            bench.coordinator.unload(0)
            assert await bench.coordinator.end("x", producer, commits=True) is ErrorCode.NOT_COORDINATOR
            bench.journal.hold()
            loading = asyncio.ensure_future(bench.coordinator.load(0, 4))
            await settle()
            code = await bench.coordinator.end("x", producer, commits=True)
            assert code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            bench.journal.release()
            await loading
            assert await bench.coordinator.end("x", producer, commits=True) is NONE
            await settle()
            assert bench.markers.sent[0][0].coordinator_epoch == 4

    run(test)
