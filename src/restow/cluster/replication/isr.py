"""The ISR as its leader manages it: which followers are in sync, the next check, and the writes.

    in the ISR ── behind for longer than replica.lag.time.max.ms ──► out
    out ── has fetched up to the high watermark and the leader's epoch start ──► in

    HostedPartition.review_isr     shrinks it (`without_laggards`), when IsrReviews schedules it
    HostedPartition.consider_joins grows it (`may_join`), when a follower has fetched
    IsrUpdates                     has the change written, and retries while the outcome is unknown
    StoreIsrWriter                 writes it to the store and notifies the controller, which reads
                                   it in `controller/notifications.py` and informs all brokers; only
                                   where the controller cannot be asked (`broker/isr_requests.py`)

The high watermark is the smallest log end of the ISR. While an ISR change is being written, the members of
the old and the new ISR count, because either may be in force.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.replication.values import PartitionRefused
from restow.cluster.store import BadVersion, NoNode, StoreError, UnreadableNode
from restow.cluster.store.znodes import IsrChangeNotification, PartitionStateZNode
from restow.cluster.tasks import Tasks
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from restow.cluster.replication.partition import HostedPartition
    from restow.cluster.replication.values import IsrWriter, LeaderAndIsrPartition
    from restow.cluster.store import Store
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock, Timer

log = logging.getLogger(__name__)

UNKNOWN = -1
_GATHER_S = 0.05


class FollowerProgress(NamedTuple):
    """A follower's progress, as its leader sees it."""

    caught_up_s: float
    """The last time at which it had everything that the leader had."""
    end_offset: int = UNKNOWN
    start_offset: int = UNKNOWN
    fetched_s: float = 0.0
    leader_end: int = UNKNOWN
    """The leader's log end at the follower's last fetch."""

    def after_fetch(self, offset: int, start_offset: int, leader_end: int, now_s: float) -> FollowerProgress:
        """Return the progress after a fetch at `offset`: the follower has everything before it.

        A follower at the leader's end has caught up now. One at the leader's end of the previous fetch had
        caught up then; otherwise no follower would ever catch up with a busy leader.
        """
        caught_up_s = self.caught_up_s
        if offset >= leader_end:
            caught_up_s = now_s
        elif self.leader_end != UNKNOWN and offset >= self.leader_end:
            caught_up_s = max(caught_up_s, self.fetched_s)
        return FollowerProgress(caught_up_s, offset, start_offset, now_s, leader_end)


def behind(
    isr: Iterable[int], followers: Mapping[int, FollowerProgress], leader_end: int
) -> list[tuple[int, FollowerProgress]]:
    """Return the ISR members that do not have everything that the leader has."""
    return [
        (follower, followers[follower])
        for follower in isr
        if follower in followers and followers[follower].end_offset != leader_end
    ]


def without_laggards(
    isr: tuple[int, ...],
    followers: Mapping[int, FollowerProgress],
    leader_end: int,
    now_s: float,
    lag_max_s: float,
) -> tuple[int, ...]:
    """Return the ISR without members that lag for too long."""
    out = {
        follower
        for follower, progress in behind(isr, followers, leader_end)
        if now_s - progress.caught_up_s > lag_max_s
    }
    return tuple(member for member in isr if member not in out)


def may_join(progress: FollowerProgress, high_watermark: int, epoch_start_offset: int) -> bool:
    """Return whether an out-of-sync follower has everything that may have been acknowledged."""
    return progress.end_offset >= max(high_watermark, epoch_start_offset)


def smallest_end(members: Iterable[int], followers: Mapping[int, FollowerProgress], leader_end: int) -> int:
    """Return the smallest log end of these replicas; the leader is the one not in `followers`."""
    smallest = leader_end
    for member in members:
        progress = followers.get(member)
        if progress is not None and progress.end_offset < smallest:
            smallest = progress.end_offset
    return smallest


class IsrReviews:
    """Times of the next ISR checks. Only partitions with lagging followers are in here."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due: list[tuple[float, int, HostedPartition]] = []
        self._ticket = count()
        self._timer: Timer | None = None
        self._timer_s = 0.0

    def __len__(self) -> int:
        return len(self._due)

    def add(self, partition: HostedPartition, due_s: float) -> None:
        """Call `partition.review_isr` at that time."""
        heappush(self._due, (due_s, next(self._ticket), partition))
        self._arm()

    def close(self) -> None:
        """Stop all checks."""
        self._due.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _arm(self) -> None:
        if not self._due:
            return
        due_s = self._due[0][0]
        if self._timer is not None:
            if self._timer_s <= due_s:
                return
            self._timer.cancel()
        self._timer_s = due_s
        self._timer = self._clock.call_later(due_s - self._clock.monotonic_s(), self._ring)

    def _ring(self) -> None:
        self._timer = None
        now_s = self._clock.monotonic_s()
        while self._due and self._due[0][0] <= now_s:
            heappop(self._due)[2].review_isr()
        self._arm()


class IsrUpdates:
    """Writes the ISRs that partitions propose. Retries if the outcome is unknown."""

    def __init__(self, broker_id: int, writer: IsrWriter, clock: Clock, retry_s: float) -> None:
        self._broker_id = broker_id
        self._writer = writer
        self._clock = clock
        self._retry_s = retry_s
        self._tasks = Tasks()

    def write(self, partition: HostedPartition) -> None:
        """Start to write the partition's `proposed_isr`."""
        isr = partition.proposed_isr
        if isr is None:
            return
        log.info("writing the ISR of %s: %s instead of %s", partition.topic_partition, isr, partition.isr)
        self._tasks.start(
            self._write(partition, partition.order, isr), f"the ISR of {partition.topic_partition}"
        )

    async def close(self) -> None:
        """Cancel pending writes."""
        await self._tasks.close()

    async def _write(
        self, partition: HostedPartition, order: LeaderAndIsrPartition, isr: tuple[int, ...]
    ) -> None:
        while partition.is_leader and partition.order is order:
            try:
                version = await self._writer.write(
                    partition.topic_partition,
                    self._broker_id,
                    order.leader_epoch,
                    isr,
                    order.partition_epoch,
                )
            except PartitionRefused as refused:
                log.info("the ISR of %s stays: %s", partition.topic_partition, refused)
                if partition.is_leader and partition.order is order:
                    partition.isr_refused()
                    await self._clock.sleep(self._retry_s)
                    if partition.order is order:
                        partition.consider_joins()
                return
            except (RestowError, OSError) as error:
                log.warning("the ISR of %s could not be written: %s", partition.topic_partition, error)
                version = None
            if version is None:
                await self._clock.sleep(self._retry_s)
            elif partition.is_leader and partition.order is order:
                partition.isr_written(isr, version)
                return


class StoreIsrWriter:
    """Conditional on the version that the leader knows, so that only the current leader can write."""

    def __init__(self, store: Store, clock: Clock, tasks: Tasks, controller_epoch: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._controller_epoch = controller_epoch
        self._changed: dict[TopicPartition, None] = {}

    async def write(
        self,
        topic_partition: TopicPartition,
        leader: int,
        leader_epoch: int,
        isr: Sequence[int],
        expected_znode_version: int,
    ) -> int | None:
        """Return the new version, or None if another state is in force. Raises StoreError if the outcome is
        unknown.

        A write of an earlier call whose response was lost counts as this call's write.
        """
        state = PartitionStateZNode(
            leader=leader,
            leader_epoch=leader_epoch,
            isr=tuple(isr),
            controller_epoch=self._controller_epoch(),
        )
        path = PartitionStateZNode.path(*topic_partition)
        try:
            version = (await self._store.set(path, state.encode(), expected_znode_version)).version
        except NoNode:
            return None
        except BadVersion:
            version = expected_znode_version + 1
            if not await self._has_written(path, state, version):
                return None
        self._note(topic_partition)
        return version

    async def _has_written(self, path: str, wanted: PartitionStateZNode, version: int) -> bool:
        """Return whether the znode has the wanted state. Its controller epoch may differ."""
        (node,) = await self._store.get_each([path])
        if node is None or node.stat.version != version:
            return False
        try:
            found = PartitionStateZNode.decode(node.data, path)
        except UnreadableNode:
            return False
        return replace(found, controller_epoch=wanted.controller_epoch) == wanted

    def _note(self, partition: TopicPartition) -> None:
        """Notify the controller. Changes of the same moment share one notification."""
        if not self._changed:
            self._clock.call_later(_GATHER_S, lambda: self._tasks.start(self._notify(), "isr notes"))
        self._changed[partition] = None

    async def _notify(self) -> None:
        changed, self._changed = tuple(self._changed), {}
        try:
            await self._store.create(
                IsrChangeNotification.PREFIX, IsrChangeNotification(changed).encode(), sequential=True
            )
        except StoreError:
            for partition in changed:
                self._note(partition)
