"""All replicas of one broker: handles requests of the controller, clients and followers.

produce ──► append ──► the leader's log ──► followers fetch ──► high watermark ──► acknowledged
"""

from __future__ import annotations

import asyncio
import logging
from types import MappingProxyType
from typing import TYPE_CHECKING

from restow.cluster.log.errors import DiskFailure, InvalidRecord, LogDirsOffline, LogError
from restow.cluster.replication.deleted import DeletedReplicas
from restow.cluster.replication.fetcher import Fetchers
from restow.cluster.replication.fetches import Fetching
from restow.cluster.replication.isr import IsrReviews, IsrUpdates
from restow.cluster.replication.offsets import OffsetSearches, begin_deletion, end_of_epoch, offset_at
from restow.cluster.replication.partition import HostedPartition, Role, Surroundings
from restow.cluster.replication.replica_selection import ReplicaSelector
from restow.cluster.replication.requests import (
    Assigned,
    Stopped,
    assigned,
    assigned_response,
    stopped,
    stopped_response,
)
from restow.cluster.replication.sessions import FetchSessions
from restow.cluster.replication.throttling import Throttles
from restow.cluster.replication.values import (
    CONSUMER,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchAnswer,
    LowWatermark,
    PartitionRefused,
    ReplicationConfig,
)
from restow.cluster.replication.waiting import Pending
from restow.wire.batches import CorruptBatch
from restow.wire.error_codes import ErrorCode
from restow.wire.produce import Produced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.cluster.log import AppendInfo, LogManager
    from restow.cluster.log.producers import Verification
    from restow.cluster.replication.values import (
        EpochQuestion,
        FetchSpec,
        FoundOffset,
        IsrWriter,
        LeaderClient,
        OffsetQuestion,
    )
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock
    from restow.wire.messages import Message

log = logging.getLogger(__name__)


class ReplicaManager:
    """The replicas of one broker. `start` and `stop` its background work."""

    def __init__(
        self,
        broker_id: int,
        logs: LogManager,
        clock: Clock,
        isr_writer: IsrWriter,
        fetch_from: Callable[[int], LeaderClient],
        *,
        min_insync_replicas: Callable[[str], int] = lambda _: 1,
        config: ReplicationConfig | None = None,
        on_leadership: Callable[[tuple[TopicPartition, ...], tuple[TopicPartition, ...]], None] = lambda *_: (
            None
        ),
        is_known: Callable[[TopicPartition], bool] = lambda _: False,
        throttles: Throttles | None = None,
        racks: Callable[[], Mapping[int, str | None]] = dict,
    ) -> None:
        """`min_insync_replicas` returns a topic's setting; `fetch_from` returns a client for a leader.

        `on_leadership` gets the partitions that this broker starts and stops leading; `is_known` says whether
        the cluster has a partition that is not here; `racks` returns those of the live brokers.
        """
        self.broker_id = broker_id
        self.config = config or ReplicationConfig()
        self.logs = logs
        self._clock = clock
        self._on_leadership = on_leadership
        self._is_known = is_known
        self._choose_replica = ReplicaSelector(self.config.reads_by_rack, racks)
        self._partitions: dict[TopicPartition, HostedPartition] = {}
        self._offline: dict[TopicPartition, None] = {}
        """Partitions that should be here, but whose log is not available."""
        self._deleted = DeletedReplicas()
        self.sessions = FetchSessions(clock, self.config.session_slots, self.config.session_eviction_ms)
        self._searches = OffsetSearches(clock)
        self._reviews = IsrReviews(clock)
        self._isr_changes = IsrUpdates(broker_id, isr_writer, clock, self.config.isr_retry_ms / 1000)
        self._throttles = throttles or Throttles()
        self.leaving = False
        """Set during shutdown: the broker follows no new leader, so that none adds it to the ISR again."""
        self._fetchers = Fetchers(broker_id, fetch_from, clock, self.config, self._throttles.follower)
        self._watermarks_moved = False
        self._checkpoints: asyncio.Task[None] | None = None
        self._surroundings = Surroundings(
            broker_id=broker_id,
            clock=clock,
            lag_max_s=self.config.lag_time_max_ms / 1000,
            min_insync_replicas=min_insync_replicas,
            isr_decided=self._isr_changes.write,
            lagging=self._reviews.add,
            watermark_moved=self._watermark_moved,
        )

    def start(self) -> None:
        """Start the periodic checkpoint of high watermarks."""
        self._checkpoints = asyncio.get_running_loop().create_task(self._checkpoint_on_and_on())

    async def stop(self) -> None:
        """Stop fetching and serving. The caller closes the logs."""
        if self._checkpoints is not None:
            self._checkpoints.cancel()
            await asyncio.gather(self._checkpoints, return_exceptions=True)
        self._reviews.close()
        self.sessions.close()
        await self._fetchers.close()
        await self._isr_changes.close()
        for partition in self._partitions.values():
            partition.go_offline(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def partition(self, topic_partition: TopicPartition) -> HostedPartition | None:
        """Return the replica on this broker, even if it is offline."""
        return self._partitions.get(topic_partition)

    def hosted(self) -> tuple[HostedPartition, ...]:
        """Return all replicas on this broker."""
        return tuple(self._partitions.values())

    # Requests of the controller

    def apply_leader_and_isr(self, request: Message) -> Message:
        """Lead and follow as the request says. `ControllerRequests` has checked the controller epoch."""
        led: list[HostedPartition] = []
        resigned: list[TopicPartition] = []
        follow: list[HostedPartition] = []
        codes = {}
        for each in assigned(request):
            before = self._partitions.get(each.topic_partition)
            was_leader = before is not None and before.is_leader
            try:
                partition = self._apply(each)
            except (PartitionRefused, LogError) as error:
                log.warning("%s cannot apply LeaderAndIsr: %s", each.topic_partition, error)
                codes[each.topic_partition] = error.code
                continue
            codes[each.topic_partition] = ErrorCode.NONE
            if partition is None:
                continue
            if partition.is_leader:
                led.append(partition)
            else:
                follow.append(partition)
                if was_leader:
                    resigned.append(each.topic_partition)
        self._fetchers.unfollow(each.topic_partition for each in (led + follow if self.leaving else led))
        self._fetchers.follow(() if self.leaving else follow)
        self._on_leadership(tuple(partition.topic_partition for partition in led), tuple(resigned))
        return assigned_response(request, codes)

    def _apply(self, each: Assigned) -> HostedPartition | None:
        """Return the partition if its role or epoch has changed. Repeating a request changes nothing."""
        order = each.order
        if each.topic_partition in self._offline:
            # Even a new replica must not begin anew elsewhere: it may be in the ISR already, or lead.
            raise PartitionRefused(ErrorCode.KAFKA_STORAGE_ERROR)
        partition = self._partitions.get(each.topic_partition)
        if partition is not None and partition.role is not Role.OFFLINE:
            if order.leader_epoch < partition.leader_epoch:
                raise PartitionRefused(
                    ErrorCode.STALE_CONTROLLER_EPOCH,
                    f"its leader epoch {order.leader_epoch} is older than {partition.leader_epoch} here",
                )
            self.logs.get_or_create(each.topic_partition, topic_id=each.topic_id)
            if order.leader_epoch == partition.leader_epoch:
                if order.partition_epoch > partition.order.partition_epoch:
                    partition.refresh(order)
                return None
        else:
            partition = self._host(each)
        if order.leader == self.broker_id:
            partition.lead(order)
        else:
            partition.follow(order)
        return partition

    def _host(self, each: Assigned) -> HostedPartition:
        if self._deleted.is_late(each):
            raise PartitionRefused(
                ErrorCode.STALE_CONTROLLER_EPOCH, "the replica was deleted after this was decided"
            )
        try:
            found = self.logs.get_or_create(
                each.topic_partition, topic_id=each.topic_id, is_new=each.order.is_new
            )
        except (DiskFailure, LogDirsOffline):
            self._offline[each.topic_partition] = None
            raise
        self._offline.pop(each.topic_partition, None)
        partition = HostedPartition(each.topic_partition, found, self._surroundings)
        self._partitions[each.topic_partition] = partition
        return partition

    def stop_replicas(self, request: Message) -> Message:
        """Stop these replicas, and delete those marked for deletion."""
        codes = {}
        resigned = []
        for each in stopped(request):
            partition = self._partitions.get(each.topic_partition)
            was_leader = partition is not None and partition.is_leader
            codes[each.topic_partition] = self._stop(each, partition)
            if was_leader and each.topic_partition not in self._partitions:
                resigned.append(each.topic_partition)
        if resigned:
            self._on_leadership((), tuple(resigned))
        return stopped_response(codes)

    def _stop(self, each: Stopped, partition: HostedPartition | None) -> ErrorCode:
        topic_partition = each.topic_partition
        offline = topic_partition in self._offline
        if offline or (partition is not None and partition.role is Role.OFFLINE):
            return ErrorCode.KAFKA_STORAGE_ERROR
        if partition is not None:
            if each.leader_epoch >= 0 and each.leader_epoch < partition.leader_epoch:
                return ErrorCode.FENCED_LEADER_EPOCH
            self._fetchers.unfollow((topic_partition,))
            del self._partitions[topic_partition]
            partition.go_offline(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if each.delete and self.logs.get(topic_partition) is not None:
            self._deleted.add(topic_partition, self.logs.topic_id_of(topic_partition), each.leader_epoch)
            try:
                self.logs.delete(topic_partition)
            except LogError as error:
                return error.code
        return ErrorCode.NONE

    def directory_failed(self, path: str, lost: Iterable[TopicPartition]) -> None:
        """Take the replicas of a failed log dir offline, until the broker restarts."""
        log.error("the log dir %s and the replicas in it are offline", path)
        resigned = []
        for topic_partition in lost:
            self._offline[topic_partition] = None
            partition = self._partitions.get(topic_partition)
            if partition is not None:
                if partition.is_leader:
                    resigned.append(topic_partition)
                partition.go_offline(ErrorCode.KAFKA_STORAGE_ERROR)
        self._fetchers.unfollow(self._offline)
        if resigned:
            self._on_leadership((), tuple(resigned))

    # Requests of clients and followers

    def find(self, topic_partition: TopicPartition) -> HostedPartition | ErrorCode:
        """Return the replica, or the error code if it cannot serve."""
        partition = self._partitions.get(topic_partition)
        if partition is not None:
            return partition
        if topic_partition in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._is_known(topic_partition):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    async def append(
        self,
        batches: Mapping[TopicPartition, bytes],
        acks: int,
        timeout_ms: int,
        *,
        from_client: bool = True,
        verifications: Mapping[TopicPartition, Verification] = MappingProxyType({}),
    ) -> dict[TopicPartition, Produced]:
        """Append; with acks=-1, wait for all in-sync replicas or the timeout."""
        results: dict[TopicPartition, Produced] = {}
        appended: dict[HostedPartition, AppendInfo] = {}
        for topic_partition, data in batches.items():
            results[topic_partition] = self._append(
                topic_partition, data, acks, appended, verifications, from_client=from_client
            )
        if acks < 0 and appended:
            codes = await self._acknowledged(appended, timeout_ms / 1000)
            for topic_partition, code in codes.items():
                if code:
                    results[topic_partition] = Produced(topic_partition.partition, code)
        return results

    def _append(
        self,
        topic_partition: TopicPartition,
        data: bytes,
        acks: int,
        appended: dict[HostedPartition, AppendInfo],
        verifications: Mapping[TopicPartition, Verification],
        *,
        from_client: bool,
    ) -> Produced:
        number = topic_partition.partition
        partition = self.find(topic_partition)
        if isinstance(partition, ErrorCode):
            return Produced(number, partition)
        try:
            info = appended[partition] = partition.append(
                data, acks=acks, from_client=from_client, verification=verifications.get(topic_partition)
            )
        except PartitionRefused as refused:
            return Produced(number, refused.code)
        except (LogError, CorruptBatch) as error:
            blamed = error.refused if isinstance(error, InvalidRecord) else ()
            return Produced(number, error.code, error_message=str(error), record_errors=blamed)
        return Produced(number, 0, info.first_offset, info.log_append_time, partition.log.start_offset)

    async def _acknowledged(
        self, appended: Mapping[HostedPartition, AppendInfo], timeout_s: float
    ) -> Mapping[TopicPartition, ErrorCode]:
        pending = Pending({partition.topic_partition for partition in appended})
        for partition, info in appended.items():
            partition.wait_for_acks(info.last_offset, pending)
        return await self._settled(pending, timeout_s)

    async def _settled(self, pending: Pending, timeout_s: float) -> Mapping[TopicPartition, ErrorCode]:
        if not pending.done.done():
            timer = self._clock.call_later(timeout_s, pending.time_out)
            try:
                await pending.done
            finally:
                timer.cancel()
        return pending.codes

    async def fetch(self, spec: FetchSpec) -> FetchAnswer:
        """Read, and wait if there is too little data; with or without a session."""
        session = self.sessions.resolve(spec)
        if isinstance(session, ErrorCode):
            return FetchAnswer(error_code=session)
        fetching = Fetching(spec.replica_id) if session is None else session.fetching
        fetching.update(spec)
        found = await fetching.answer(
            spec,
            self.find,
            self._choose_replica,
            self._clock,
            self._throttles.leader,
            incremental=spec.session_epoch not in (INITIAL_EPOCH, FINAL_EPOCH),
            is_session=session is not None,
        )
        return FetchAnswer(session_id=NO_SESSION if session is None else session.session_id, partitions=found)

    async def list_offsets(
        self,
        questions: Mapping[TopicPartition, OffsetQuestion],
        replica_id: int = CONSUMER,
        *,
        committed_only: bool = False,
    ) -> dict[TopicPartition, FoundOffset]:
        """Return the offsets for timestamps, including the special ones for start and end."""
        finish = self._searches.finish
        return {
            key: await finish(offset_at(self.find(key), it, replica_id, committed_only=committed_only))
            for key, it in questions.items()
        }

    def offsets_for_leader_epoch(
        self, questions: Mapping[TopicPartition, EpochQuestion]
    ) -> dict[TopicPartition, FoundOffset]:
        """Return where epochs ended: the largest one up to the requested, and its end offset."""
        return {key: end_of_epoch(self.find(key), question) for key, question in questions.items()}

    async def delete_records(
        self, offsets: Mapping[TopicPartition, int], timeout_ms: int
    ) -> dict[TopicPartition, LowWatermark]:
        """Raise log start offsets (-1 for the high watermark), and wait for all in-sync replicas."""
        started = {key: begin_deletion(self.find(key), offset) for key, offset in offsets.items()}
        results = {key: LowWatermark(it) for key, it in started.items() if isinstance(it, ErrorCode)}
        begun = {key: it for key, it in started.items() if not isinstance(it, ErrorCode)}
        pending = Pending(set(begun))
        for partition, offset in begun.values():
            partition.wait_for_deletion(offset, pending)
        if begun:
            codes = await self._settled(pending, timeout_ms / 1000)
            for key, (partition, _) in begun.items():
                results[key] = LowWatermark(codes[key], -1 if codes[key] else partition.low_watermark)
        return results

    def checkpoint(self) -> None:
        """Write the high watermarks to disk, if any has moved."""
        if self._watermarks_moved:
            self._watermarks_moved = False
            self.logs.checkpoint()

    async def _checkpoint_on_and_on(self) -> None:
        while True:
            await self._clock.sleep(self.config.checkpoint_interval_ms / 1000)
            self.checkpoint()

    def _watermark_moved(self) -> None:
        self._watermarks_moved = True
