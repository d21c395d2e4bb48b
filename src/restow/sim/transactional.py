"""A transactional producer, one transaction at a time, and a reader of committed records.

The producer repeats every request until it has an answer that means something. If it is fenced, it ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.sim.reading import leaders_of, records_in
from restow.wire.batches import TRANSACTIONAL_BIT, scan
from restow.wire.end_markers import end_marker_of
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    FetchRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from restow.wire.records import Record, build

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from restow.sim.client import SimClient
    from restow.wire.messages import Message

_ASK_TIMEOUT_S = 15.0
_ACK_TIMEOUT_MS = 10_000
_PAUSE_S = 0.2
_GROUP, _TRANSACTION = 0, 1
_READ_COMMITTED = 1
_MOST_BYTES = 1 << 20
_FINAL = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)
"""Answers that another try would not change."""


class TransactionFailed(Exception):
    """The cluster has refused a part of a transaction for good."""

    def __init__(self, what: str, code: ErrorCode) -> None:
        super().__init__(f"{what}: {code.name}")
        self.code = code


class SimTransactionalProducer:
    """A producer with a transactional id.

    `begin` comes first. After `TransactionFailed`, abort or begin with another producer.
    """

    def __init__(
        self, client: SimClient, brokers: Iterable[int], transactional_id: str, timeout_ms: int
    ) -> None:
        self._client, self._brokers = client, tuple(brokers)
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._producer = (-1, -1)
        self._sequences: dict[tuple[str, int], int] = {}
        self._part_of_it: set[tuple[str, int]] = set()
        self.is_stopped = False
        """Set to end all waiting, at the end of a run."""

    async def begin(self) -> None:
        """Get a producer id and an epoch, which fences earlier producers of this id."""
        answer = await self._ask_coordinator(
            InitProducerIdRequest(
                transactional_id=self.transactional_id,
                transaction_timeout_ms=self._timeout_ms,
                producer_id=-1,
                producer_epoch=-1,
            ),
            lambda it: it.error_code,
        )
        self._producer = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    async def write(self, topic: str, partition: int, values: list[bytes]) -> None:
        """Append records in the transaction."""
        if (topic, partition) not in self._part_of_it:
            await self._add(topic, partition)
        sequence = self._sequences.get((topic, partition), 0)
        now_ms = self._client.clock.now_ms()
        batch = build(
            [Record(at, now_ms, None, value) for at, value in enumerate(values)],
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            attributes=TRANSACTIONAL_BIT,
        )
        data = ProduceRequest.TopicProduceData
        request = ProduceRequest(
            transactional_id=self.transactional_id,
            acks=-1,
            timeout_ms=_ACK_TIMEOUT_MS,
            topic_data=[
                data(name=topic, partition_data=[data.PartitionProduceData(index=partition, records=batch)])
            ],
        )
        await self._repeat(
            lambda: self._ask_leader(topic, partition, request),
            lambda it: it.responses[0].partition_responses[0].error_code,
            f"produce to {topic}-{partition}",
        )
        self._sequences[topic, partition] = sequence + len(values)

    async def _add(self, topic: str, partition: int) -> None:
        kind = AddPartitionsToTxnRequest
        request = kind(
            max_version=3,
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer[0],
            v3_and_below_producer_epoch=self._producer[1],
            v3_and_below_topics=[kind.AddPartitionsToTxnTopic(name=topic, partitions=[partition])],
        )
        await self._ask_coordinator(
            request,
            lambda it: it.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code,
        )
        self._part_of_it.add((topic, partition))

    async def commit_offset(self, group: str, topic: str, partition: int, offset: int) -> None:
        """Commit a group's offset in the transaction."""
        await self._ask_coordinator(
            AddOffsetsToTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self._producer[0],
                producer_epoch=self._producer[1],
                group_id=group,
            ),
            lambda it: it.error_code,
        )
        wanted = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            generation_id=-1,
            member_id="",
            group_instance_id=None,
            topics=[
                wanted(
                    name=topic,
                    partitions=[
                        wanted.TxnOffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=-1,
                            committed_metadata="",
                        )
                    ],
                )
            ],
        )
        await self._repeat(
            lambda: self._ask_found(_GROUP, group, request),
            lambda it: it.topics[0].partitions[0].error_code,
            f"commit of {group}",
        )

    async def end(self, *, commits: bool) -> None:
        """Commit or abort. Without `TransactionFailed`, the transaction has ended this way."""
        self._part_of_it.clear()
        await self._ask_coordinator(
            EndTxnRequest(
                transactional_id=self.transactional_id,
                producer_id=self._producer[0],
                producer_epoch=self._producer[1],
                committed=commits,
            ),
            lambda it: it.error_code,
        )

    async def _ask_coordinator(self, request: Message, code_of: Callable[[Message], int]) -> Message:
        return await self._repeat(
            lambda: self._ask_found(_TRANSACTION, self.transactional_id, request),
            code_of,
            type(request).__name__,
        )

    async def _repeat(
        self, ask: Callable[[], Awaitable[Message | None]], code_of: Callable[[Message], int], what: str
    ) -> Message:
        while not self.is_stopped:
            try:
                answer = await ask()
            except (ConnectionError, TimeoutError):
                answer = None
            if answer is not None and (code := ErrorCode.of(code_of(answer))) in _FINAL:
                if code:
                    raise TransactionFailed(what, code)
                return answer
            await self._client.clock.sleep(_PAUSE_S)
        raise TransactionFailed(what, ErrorCode.REQUEST_TIMED_OUT)

    async def _ask_found(self, key_type: int, key: str, request: Message) -> Message | None:
        """Ask the coordinator of a key, which some broker knows."""
        for broker in self._brokers:
            try:
                found = await self._client.ask(
                    FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]),
                    broker,
                    timeout_s=_ASK_TIMEOUT_S,
                )
            except (ConnectionError, TimeoutError):
                continue
            if not found.coordinators[0].error_code:
                node_id = int(found.coordinators[0].node_id)
                return await self._client.ask(request, node_id, timeout_s=_ASK_TIMEOUT_S)
        return None

    async def _ask_leader(self, topic: str, partition: int, request: Message) -> Message | None:
        leader = (await leaders_of(self._client, self._brokers, topic, _ASK_TIMEOUT_S)).get(partition, -1)
        return None if leader < 0 else await self._client.ask(request, leader, timeout_s=_ASK_TIMEOUT_S)


class CommittedReader:
    """Reads committed records of one topic, in order and each once, as a consumer does."""

    def __init__(self, client: SimClient, brokers: Iterable[int], topic: str) -> None:
        self._client, self._brokers, self._topic = client, tuple(brokers), topic
        self.offsets: dict[int, int] = {}
        self.values: dict[int, list[bytes]] = {}
        self._aborted: dict[int, set[int]] = {}

    async def read_some(self, partitions: Iterable[int]) -> None:
        """Read on in these partitions, as far as their leaders answer."""
        leaders = await leaders_of(self._client, self._brokers, self._topic, _ASK_TIMEOUT_S)
        for partition in partitions:
            leader = leaders.get(partition, -1)
            if leader >= 0:
                await self._read(partition, leader)

    async def _read(self, partition: int, leader: int) -> None:
        offset = self.offsets.setdefault(partition, 0)
        wanted = FetchRequest.FetchTopic
        request = FetchRequest(
            max_version=12,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_MOST_BYTES,
            isolation_level=_READ_COMMITTED,
            session_id=0,
            session_epoch=-1,
            topics=[
                wanted(
                    topic=self._topic,
                    partitions=[
                        wanted.FetchPartition(
                            partition=partition, fetch_offset=offset, partition_max_bytes=_MOST_BYTES
                        )
                    ],
                )
            ],
        )
        try:
            answer = await self._client.ask(request, leader, timeout_s=_ASK_TIMEOUT_S)
        except (ConnectionError, TimeoutError):
            return
        for found in answer.responses[0].partitions:
            if not found.error_code:
                self._take(partition, found)

    def _take(self, partition: int, found: Message) -> None:
        upcoming = sorted((each.first_offset, each.producer_id) for each in found.aborted_transactions or ())
        aborted = self._aborted.setdefault(partition, set())
        values = self.values.setdefault(partition, [])
        batches = bytes(found.records or b"")
        for position, header in scan(batches):
            batch = batches[position : position + header.size]
            while upcoming and upcoming[0][0] <= header.last_offset:
                aborted.add(upcoming.pop(0)[1])
            if header.is_control:
                marker = end_marker_of(batch)
                if marker is not None and not marker.commits:
                    aborted.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborted):
                offset = self.offsets[partition]
                values += [each.value or b"" for each in records_in(batch) if each.offset >= offset]
            self.offsets[partition] = header.next_offset
