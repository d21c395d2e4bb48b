"""An idempotent producer that remembers what was acknowledged.

It sends one batch per partition at a time and repeats it, with the same sequence numbers, until the broker
answers. So every record is in the log exactly once and in order, and every acknowledged record must stay
there.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.wire.error_codes import ErrorCode
from restow.wire.messages import InitProducerIdRequest, MetadataRequest, ProduceRequest
from restow.wire.records import Record, build

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.sim.client import SimClient
    from restow.wire.messages import Message

_PRODUCE_VERSION = 8
_ASK_TIMEOUT_S = 15.0
_ACK_TIMEOUT_MS = 10_000
_MOST_IN_A_BATCH = 50
_SENT_BEFORE = ErrorCode.DUPLICATE_SEQUENCE_NUMBER


@dataclass(slots=True)
class Lane:
    """The batches of one partition."""

    waiting: list[bytes] = field(default_factory=list)
    batch: list[bytes] = field(default_factory=list)
    """Sent at least once, without a response yet."""
    next_sequence: int = 0
    acknowledged: list[bytes] = field(default_factory=list)
    """In the order of sending."""
    acknowledged_end: int = 0
    """The offset behind the last acknowledged record."""


class SimProducer:
    """Records for the partitions of one topic."""

    def __init__(self, client: SimClient, brokers: Iterable[int], topic: str) -> None:
        self._client, self._brokers, self._topic = client, tuple(brokers), topic
        self.lanes: defaultdict[int, Lane] = defaultdict(Lane)
        self._busy: dict[int, Lane] = {}
        """The lanes with records that are not acknowledged."""
        self.newly_acknowledged: dict[int, Lane] = {}
        """The lanes with acknowledgements that nobody has looked at yet; whoever looks removes them."""
        self._leaders: dict[int, int] = {}
        self._id: tuple[int, int] | None = None

    @property
    def acknowledged(self) -> int:
        return sum(len(lane.acknowledged) for lane in self.lanes.values())

    @property
    def is_idle(self) -> bool:
        return not self._busy

    def put(self, partition: int, value: bytes) -> None:
        """Send this value with the next round."""
        lane = self._busy[partition] = self.lanes[partition]
        lane.waiting.append(value)

    async def round(self) -> None:
        """Send the waiting batches, one request to each leader, and handle the responses."""
        producer = await self._ready()
        if producer is None:
            return
        by_leader: defaultdict[int, dict[int, Lane]] = defaultdict(dict)
        for partition, lane in self._busy.items():
            if not lane.batch:
                lane.batch, lane.waiting = lane.waiting[:_MOST_IN_A_BATCH], lane.waiting[_MOST_IN_A_BATCH:]
            by_leader[self._leaders.get(partition, -1)][partition] = lane
        for leader, lanes in by_leader.items():
            if leader < 0 or not await self._send(leader, lanes, producer):
                self._leaders.clear()

    async def _ready(self) -> tuple[int, int] | None:
        """Return our id and epoch, once they and the leaders are known."""
        if self._id is None:
            answer = await self._ask_any(
                InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
            )
            if answer is None or answer.error_code:
                return None
            self._id = answer.producer_id, answer.producer_epoch
        if not self._leaders:
            answer = await self._ask_any(MetadataRequest(topics=None))
            for topic in () if answer is None else answer.topics:
                if topic.name == self._topic:
                    self._leaders = {each.partition_index: each.leader_id for each in topic.partitions}
        return self._id if self._leaders else None

    async def _ask_any(self, request: Message) -> Message | None:
        for broker in self._brokers:
            try:
                return await self._client.ask(request, broker, timeout_s=_ASK_TIMEOUT_S)
            except (ConnectionError, TimeoutError):
                continue
        return None

    async def _send(self, leader: int, lanes: dict[int, Lane], producer: tuple[int, int]) -> bool:
        """Return whether all batches are in the log."""
        data = ProduceRequest.TopicProduceData
        partitions = [
            data.PartitionProduceData(index=partition, records=self._batch(lane, producer))
            for partition, lane in lanes.items()
        ]
        request = ProduceRequest(
            transactional_id=None,
            acks=-1,
            timeout_ms=_ACK_TIMEOUT_MS,
            topic_data=[data(name=self._topic, partition_data=partitions)],
        )
        try:
            answer = await self._client.ask(
                request, leader, version=_PRODUCE_VERSION, timeout_s=_ASK_TIMEOUT_S
            )
        except (ConnectionError, TimeoutError):
            return False
        codes = [self._settle(each) for each in answer.responses[0].partition_responses]
        return not any(codes)

    def _batch(self, lane: Lane, producer: tuple[int, int]) -> bytes:
        now_ms = self._client.clock.now_ms()
        records = [Record(at, now_ms, None, value) for at, value in enumerate(lane.batch)]
        return build(
            records, producer_id=producer[0], producer_epoch=producer[1], base_sequence=lane.next_sequence
        )

    def _settle(self, answer: Message) -> int:
        """Handle one partition's response; return 0 if its batch is in the log."""
        code = int(answer.error_code)
        if code in (0, _SENT_BEFORE):
            lane = self.lanes[answer.index]
            lane.acknowledged += lane.batch
            if not code:
                lane.acknowledged_end = int(answer.base_offset) + len(lane.batch)
            lane.next_sequence += len(lane.batch)
            lane.batch = []
            self.newly_acknowledged[answer.index] = lane
            if not lane.waiting:
                del self._busy[answer.index]
            return 0
        return code
