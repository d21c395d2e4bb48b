"""One replica of one partition on this broker.

    Idle ──► Leader ◄──► Follower          by LeaderAndIsr, each time with a higher leader epoch
      any of them ──► Offline              when the log's disk fails, or the replica is stopped

A leader appends, tracks its followers, moves the high watermark and decides on ISR changes. A follower copies
its leader. Nothing in here awaits; waiting requests are called back.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.log.errors import LogError
from restow.cluster.replication.following import divergence
from restow.cluster.replication.isr import (
    FollowerProgress,
    behind,
    may_join,
    smallest_end,
    without_laggards,
)
from restow.cluster.replication.values import (
    NO_EPOCH,
    NO_ORDER,
    ONLOOKER,
    LeaderAndIsrPartition,
    PartitionRefused,
)
from restow.cluster.replication.waiting import OffsetQueue
from restow.wire.error_codes import ErrorCode
from restow.wire.fetch import Fetched

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.log import AppendInfo, PartitionLog
    from restow.cluster.log.producers import Verification
    from restow.cluster.replication.fetches import Fetching
    from restow.cluster.replication.values import FetchPartition
    from restow.cluster.replication.waiting import Pending
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock


class Role(Enum):
    """The replica's role."""

    IDLE = "idle"
    LEADER = "leader"
    FOLLOWER = "follower"
    OFFLINE = "offline"


class Surroundings(NamedTuple):
    """Objects that all partitions of a broker share."""

    broker_id: int
    clock: Clock
    lag_max_s: float
    min_insync_replicas: Callable[[str], int]
    isr_decided: Callable[[HostedPartition], None]
    """Called to write a partition's `proposed_isr`."""
    lagging: Callable[[HostedPartition, float], None]
    """Called to schedule `review_isr` at that monotonic time."""
    watermark_moved: Callable[[], None]


class HostedPartition:
    """A replica, in any role."""

    def __init__(
        self, topic_partition: TopicPartition, log: PartitionLog, surroundings: Surroundings
    ) -> None:
        self.topic_partition = topic_partition
        self.log = log
        self.role = Role.IDLE
        self.order = NO_ORDER
        """The last LeaderAndIsr state, with this leader's ISR changes since."""
        self.proposed_isr: tuple[int, ...] | None = None
        """An ISR that is being written."""
        self.followers: dict[int, FollowerProgress] = {}
        self.epoch_start_offset = 0
        """Start offset of this leader's epoch."""
        self.at_end: dict[Fetching, None] = {}
        """Followers' fetches, called when the log grows."""
        self.at_watermark: dict[Fetching, None] = {}
        """Consumers' fetches, called when the high watermark moves."""
        self._around = surroundings
        self._acks = OffsetQueue(topic_partition)
        self._deletions = OffsetQueue(topic_partition)
        self._hidden: deque[tuple[int, int]] = deque()
        """End offsets and sizes of appends after the high watermark."""
        self._reviewed = False

    @property
    def leader_epoch(self) -> int:
        return self.order.leader_epoch

    @property
    def isr(self) -> tuple[int, ...]:
        return self.order.isr

    @property
    def is_leader(self) -> bool:
        return self.role is Role.LEADER

    # Requests of the controller

    def lead(self, order: LeaderAndIsrPartition) -> None:
        """Become leader, in an epoch that starts at the log's end. Replicas that a reassignment removes count
        until the ISR has lost them, because until then they may be elected.
        """
        now_s = self._around.clock.monotonic_s()
        began = order.leader_epoch > self.leader_epoch or not self.is_leader
        if began:
            self.followers = {}
            self.log.begin_epoch(order.leader_epoch)
            self.epoch_start_offset = self.log.end_offset
        self._take_order(order, Role.LEADER)
        self.followers = {
            replica: self.followers.get(replica) or FollowerProgress(now_s)
            for replica in dict.fromkeys(order.replicas + order.isr)
            if replica != self._around.broker_id
        }
        self._advance()
        self._review_later(now_s)

    def follow(self, order: LeaderAndIsrPartition) -> None:
        """Become follower, of no leader if it is -1.

        An epoch in which this broker led and wrote nothing is forgotten, because the new leader may have
        records of an earlier epoch there.
        """
        self.log.epochs.truncate_from_end(self.log.end_offset)
        self._take_order(order, Role.FOLLOWER)
        self.followers = {}
        self._fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._hidden.clear()

    def refresh(self, order: LeaderAndIsrPartition) -> None:
        """Adopt the ISR of a later state with the same leader and epoch."""
        self._take_order(order, self.role)
        if self.is_leader:
            self._advance()
            self.consider_joins()
            self._review_later(self._around.clock.monotonic_s())

    def go_offline(self, code: ErrorCode) -> None:
        """Stop serving; waiting requests get the error code."""
        self.role = Role.OFFLINE
        self.proposed_isr = None
        self._fail_waiting(code)
        self._upset()

    def _take_order(self, order: LeaderAndIsrPartition, role: Role) -> None:
        self.role = role
        self.order = order
        self.proposed_isr = None
        self._upset()

    # Appending and acknowledgement

    def append(
        self,
        batches: bytes,
        *,
        acks: int,
        from_client: bool = True,
        verification: Verification | None = None,
    ) -> AppendInfo:
        """Append as leader, for a client or a coordinator. Raises PartitionRefused, or the log's error."""
        self.require_leader()
        if acks < 0 and not self._has_enough_replicas():
            raise PartitionRefused(ErrorCode.NOT_ENOUGH_REPLICAS)
        log = self.log
        end = log.end_offset
        info = log.append_as_leader(
            batches,
            self.leader_epoch,
            self._around.clock.now_ms(),
            from_client=from_client,
            verification=verification,
        )
        if not info.duplicate:
            self._appended(end, info.size_bytes)
        return info

    def _appended(self, former_end: int, size: int) -> None:
        followers = self.followers
        if followers:
            now_s = self._around.clock.monotonic_s()
            for follower, progress in followers.items():
                if progress.end_offset == former_end:
                    followers[follower] = progress._replace(caught_up_s=now_s)
            if not self._reviewed:
                self._review_later(now_s)
        self._hidden.append((self.log.end_offset, size))
        for watcher in self.at_end:
            watcher.changed(self.topic_partition, size)
        self._advance()

    def wait_for_acks(self, last_offset: int, pending: Pending) -> None:
        """Settle `pending` when the high watermark passes the offset, or cannot under this leader."""
        self._acks.wait(last_offset + 1, pending)
        self._settle_acks()

    def _settle_acks(self) -> None:
        watermark = self.log.high_watermark
        if self._acks.is_due(watermark):
            self._acks.reach(watermark, self._acknowledgement())

    def _acknowledgement(self) -> ErrorCode:
        if self._has_enough_replicas():
            return ErrorCode.NONE
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND

    def _has_enough_replicas(self) -> bool:
        """Check min.insync.replicas, capped at the number of replicas."""
        required = self._around.min_insync_replicas(self.topic_partition.topic)
        return len(self.isr) >= min(required, len(self.order.replicas))

    def _fail_waiting(self, code: ErrorCode) -> None:
        self._acks.fail(code)
        self._deletions.fail(code)

    # Deleting records

    @property
    def low_watermark(self) -> int:
        """Return the smallest log start of the in-sync replicas, as far as known."""
        members = [self.followers[each] for each in self.isr if each in self.followers]
        return min([self.log.start_offset, *(each.start_offset for each in members)])

    def delete_records_before(self, offset: int) -> None:
        """Delete as leader. Waiting fetches return at once, so followers learn of it."""
        self.require_leader()
        if not self.log.config.cleanup_delete:
            raise PartitionRefused(ErrorCode.POLICY_VIOLATION)
        self.log.delete_records_before(offset)
        self._upset()

    def wait_for_deletion(self, offset: int, pending: Pending) -> None:
        """Settle `pending` when no in-sync replica starts before the offset."""
        self._deletions.wait(offset, pending)
        self._deletions.reach(self.low_watermark, ErrorCode.NONE)

    # Reading

    def fetch(
        self,
        wanted: FetchPartition,
        replica_id: int,
        limit: int,
        *,
        min_one: bool,
        committed_only: bool = False,
        from_follower: bool = False,
    ) -> Fetched:
        """Read at most `limit` bytes; with `min_one` a first batch may be larger. A follower's fetch also
        reports its progress, if its log matches ours. A consumer may read `from_follower`.
        """
        number = self.topic_partition.partition
        log = self.log
        try:
            self.require_leader(wanted.leader_epoch, or_follower=from_follower and replica_id < 0)
            if replica_id >= 0 and replica_id not in self.followers:
                return self._error(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            if wanted.last_fetched_epoch >= 0 and (end := divergence(log, wanted)) is not None:
                return Fetched(number, 0, log.high_watermark, -1, log.start_offset, diverging_epoch=end)
            most = min(limit, wanted.max_bytes)
            end_offset = self.readable_end(replica_id, committed_only=committed_only)
            records = log.read(wanted.offset, most, end_offset, min_one=min_one)
        except (PartitionRefused, LogError) as error:
            return self._error(error.code)
        if replica_id >= 0:
            self._follower_asked(replica_id, wanted)
        aborted = log.aborted_with(wanted.offset, records) if committed_only else None
        return Fetched(
            number, 0, log.high_watermark, log.last_stable_offset, log.start_offset, records, aborted=aborted
        )

    def readable_end(self, replica_id: int, *, committed_only: bool = False) -> int:
        """Return the end offset for this reader."""
        if committed_only:
            return self.log.last_stable_offset
        return self.log.end_offset if replica_id >= 0 or replica_id == ONLOOKER else self.log.high_watermark

    def _error(self, code: ErrorCode) -> Fetched:
        """Return an error with the log's bounds, so that an out-of-range follower can reset."""
        if self.role is Role.OFFLINE:
            return Fetched(self.topic_partition.partition, code)
        log = self.log
        return Fetched(
            self.topic_partition.partition, code, log.high_watermark, log_start_offset=log.start_offset
        )

    def require_leader(self, leader_epoch: int = NO_EPOCH, *, or_follower: bool = False) -> None:
        """Raise PartitionRefused unless this is the leader, or a follower, of that epoch if given."""
        if self.role is Role.OFFLINE:
            raise PartitionRefused(ErrorCode.KAFKA_STORAGE_ERROR)
        if leader_epoch != NO_EPOCH and leader_epoch != self.leader_epoch:
            older = leader_epoch < self.leader_epoch
            raise PartitionRefused(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
        if self.role is not Role.LEADER and not (or_follower and self.role is Role.FOLLOWER):
            raise PartitionRefused(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    # Followers' progress and the ISR

    def _follower_asked(self, follower: int, wanted: FetchPartition) -> None:
        now_s = self._around.clock.monotonic_s()
        end = self.log.end_offset
        progress = self.followers[follower]
        self.followers[follower] = progress.after_fetch(wanted.offset, wanted.log_start_offset, end, now_s)
        if progress.end_offset != wanted.offset:
            self._advance()
        if progress.start_offset != wanted.log_start_offset:
            self._deletions.reach(self.low_watermark, ErrorCode.NONE)
        if follower not in self.isr:
            self.consider_joins()
        elif wanted.offset < end and not self._reviewed:
            self._review_later(now_s)

    def consider_joins(self) -> None:
        """Propose an ISR with the followers that have caught up."""
        if self.proposed_isr is not None or not self.is_leader:
            return
        watermark = self.log.high_watermark
        joining = tuple(
            follower
            for follower, progress in self.followers.items()
            if follower not in self.isr
            and follower in self.order.replicas
            and may_join(progress, watermark, self.epoch_start_offset)
        )
        if joining:
            self._propose(self.isr + joining)

    def review_isr(self) -> None:
        """Propose an ISR without followers that lag for too long, and schedule the next check."""
        self._reviewed = False
        if not self.is_leader:
            return
        around = self._around
        now_s = around.clock.monotonic_s()
        if self.proposed_isr is None:
            kept = without_laggards(self.isr, self.followers, self.log.end_offset, now_s, around.lag_max_s)
            if kept != self.isr:
                self._propose(kept)
        self._review_later(now_s)

    def _review_later(self, now_s: float) -> None:
        """Schedule the check for when the first lagging follower exceeds the allowed lag."""
        late = behind(self.isr, self.followers, self.log.end_offset)
        if late and not self._reviewed:
            self._reviewed = True
            lag_max_s = self._around.lag_max_s
            due_s = min(progress.caught_up_s for _, progress in late) + lag_max_s
            self._around.lagging(self, max(due_s, now_s + lag_max_s / 10))

    def _propose(self, isr: tuple[int, ...]) -> None:
        self.proposed_isr = isr
        self._around.isr_decided(self)

    def isr_written(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """Adopt the written ISR."""
        self.order = self.order._replace(isr=isr, partition_epoch=partition_epoch)
        self.proposed_isr = None
        self._advance()
        self._deletions.reach(self.low_watermark, ErrorCode.NONE)
        self.consider_joins()

    def isr_refused(self) -> None:
        """Drop the proposal, because the ISR is as it was."""
        self.proposed_isr = None

    def _advance(self) -> None:
        """Advance the high watermark as far as the old and the new ISR have come."""
        log = self.log
        members = self.isr if self.proposed_isr is None else (*self.isr, *self.proposed_isr)
        watermark = smallest_end(members, self.followers, log.end_offset)
        if watermark <= log.high_watermark:
            return
        log.high_watermark = watermark
        self._around.watermark_moved()
        size = 0
        hidden = self._hidden
        while hidden and hidden[0][0] <= watermark:
            size += hidden.popleft()[1]
        self._settle_acks()
        for watcher in self.at_watermark:
            watcher.changed(self.topic_partition, size)
        for watcher in self.at_end:
            watcher.changed(self.topic_partition, 0)

    def follow_watermark(self, leaders: int) -> None:
        """Adopt the leader's high watermark, up to our own log end."""
        log = self.log
        if min(leaders, log.end_offset) > log.high_watermark:
            log.high_watermark = leaders
            self._around.watermark_moved()
            for watcher in self.at_watermark:
                watcher.upset(self.topic_partition)

    def _upset(self) -> None:
        for watcher in (*self.at_end, *self.at_watermark):
            watcher.upset(self.topic_partition)
