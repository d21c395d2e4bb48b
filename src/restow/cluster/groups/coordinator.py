"""The group coordinator of one broker.

It manages the groups of those `__consumer_offsets` partitions that its broker leads: `load` and `unload`
follow the leadership. Every response has an error code; no client request raises.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from restow.cluster.groups.consumer.members import JOINING_EPOCH
from restow.cluster.groups.consumer.requests import (
    ConsumerGroupDescription,
    HeartbeatRefused,
    HeartbeatReply,
    check_heartbeat,
)
from restow.cluster.groups.consumer.running import RunningConsumerGroup
from restow.cluster.groups.describing import describe_classic
from restow.cluster.groups.requests import (
    NO_MEMBER,
    DeleteOffsetsReply,
    FetchedOffsets,
    GroupDescription,
    GroupListing,
    JoinReply,
    LeaveReply,
    ListReply,
    OffsetToCommit,
    SyncReply,
)
from restow.cluster.groups.running import RunningGroup
from restow.cluster.groups.shard import Shard
from restow.cluster.groups.states import GroupState
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from restow.cluster.groups.config import GroupConfig
    from restow.cluster.groups.consumer.requests import HeartbeatRequest
    from restow.cluster.groups.consumer.topics import TopicDirectory
    from restow.cluster.groups.journal import RecordJournal
    from restow.cluster.groups.requests import CommitRequest, JoinRequest, LeavingMember, SyncRequest
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock, Timer

# A record's strings have at most 32,767 bytes; a member id is the client id and a suffix.
_LONGEST_GROUP_ID_BYTES = 32_767
_LONGEST_NAME_BYTES = 32_000


AnyGroup: TypeAlias = RunningGroup | RunningConsumerGroup


class GroupCoordinator:
    """Groups and their offsets. `make_id` returns the unique suffix of a new member's id."""

    def __init__(
        self,
        *,
        clock: Clock,
        partition_for: Callable[[str], int],
        journal: RecordJournal,
        config: GroupConfig,
        make_id: Callable[[], str],
        topics: TopicDirectory,
    ) -> None:
        self._clock = clock
        self._partition_for = partition_for
        self._config = config
        self._make_id = make_id
        self._new_shard = partial(
            Shard, clock=clock, journal=journal, config=config, make_id=make_id, topics=topics
        )
        self._shards: dict[int, Shard] = {}
        self._expiry_timer: Timer | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # Lifecycle

    def start(self) -> None:
        """Start the periodic expiry of old offsets."""
        interval_s = self._config.offsets_retention_check_interval_ms / 1000
        self._expiry_timer = self._clock.call_later(interval_s, self._expiry_is_due)

    async def close(self) -> None:
        """Unload all groups; waiting members are told to look for another coordinator."""
        if self._expiry_timer is not None:
            self._expiry_timer.cancel()
            self._expiry_timer = None
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.close()
        for shard in shards.values():
            await shard.writer.stop()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def load(self, partition: int) -> None:
        """Load the groups of a partition that this broker now leads. Does nothing if already loaded.

        If it cannot be read, the error is raised and the partition counts as led elsewhere.
        """
        if partition in self._shards:
            return
        shard = self._shards[partition] = self._new_shard(partition)
        try:
            await shard.load()
        except BaseException:
            if self._shards.get(partition) is shard:
                self.unload(partition)
            raise

    def unload(self, partition: int) -> None:
        """Unload the groups of a partition that this broker no longer leads."""
        if shard := self._shards.pop(partition, None):
            shard.close()

    # Members

    async def join(self, group_id: str, request: JoinRequest) -> JoinReply:
        error = self._join_error(group_id, request)
        if error is not None:
            return JoinReply(error=error, member_id=request.member_id)
        shard = self._shards[self._partition_for(group_id)]
        running = shard.groups.get(group_id)
        if isinstance(running, RunningConsumerGroup):
            if not running.is_empty:
                return await running.join(request, self._make_id)
            running = shard.become_classic(running)
        if running is None:
            if request.member_id != NO_MEMBER:
                return JoinReply(error=ErrorCode.UNKNOWN_MEMBER_ID, member_id=request.member_id)
            running = shard.create(group_id)
        return await running.join(request)

    async def sync(self, group_id: str, request: SyncRequest) -> SyncReply:
        """Sync. A group that is loading has lost its rebalance, so its members must join again."""
        running = self._find(group_id)
        if running is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return SyncReply(error=ErrorCode.REBALANCE_IN_PROGRESS)
        if running is None:
            return SyncReply(error=ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(running, ErrorCode):
            return SyncReply(error=running)
        return await running.sync(request)

    async def heartbeat(
        self, group_id: str, generation: int, member_id: str, instance_id: str | None = None
    ) -> ErrorCode:
        """Accept a heartbeat. While a group is loading, every heartbeat is accepted."""
        running = self._find(group_id)
        if running is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return ErrorCode.NONE
        if running is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if isinstance(running, ErrorCode):
            return running
        if isinstance(running, RunningConsumerGroup):
            return await running.classic_heartbeat(generation, member_id, instance_id)
        now_ms = self._clock.now_ms()
        error, effects = running.group.heartbeat(generation, member_id, instance_id, now_ms)
        running.apply(effects)
        return error

    async def leave(self, group_id: str, members: Sequence[LeavingMember]) -> LeaveReply:
        running = self._find(group_id)
        if isinstance(running, ErrorCode):
            return LeaveReply(running)
        if running is None:
            return LeaveReply(
                ErrorCode.NONE, tuple((member, ErrorCode.UNKNOWN_MEMBER_ID) for member in members)
            )
        if isinstance(running, RunningConsumerGroup):
            return await running.leave(members)
        results, effects = running.group.leave(members, self._clock.now_ms())
        running.apply(effects)
        return LeaveReply(ErrorCode.NONE, tuple(zip(members, results, strict=True)))

    async def consumer_heartbeat(self, group_id: str, request: HeartbeatRequest) -> HeartbeatReply:
        """Answer a heartbeat of the protocol `consumer`. A first one makes the group."""
        running = self._find(group_id)
        if isinstance(running, ErrorCode):
            return HeartbeatReply(error=running)
        try:
            check_heartbeat(request, self._config.assignors)
        except HeartbeatRefused as refused:
            return HeartbeatReply(error=refused.code, message=str(refused))
        if not request.member_id:
            request = replace(request, member_id=self._make_id())
        shard = self._shards[self._partition_for(group_id)]
        joins = request.epoch == JOINING_EPOCH
        if running is None and joins:
            running = shard.create_consumer(group_id)
        elif isinstance(running, RunningGroup) and joins:
            if not running.may_end:
                return await shard.upgrade(running, request)
            running = shard.become_consumer(running)
        if not isinstance(running, RunningConsumerGroup):
            return HeartbeatReply(
                error=ErrorCode.GROUP_ID_NOT_FOUND, message=f"Consumer group {group_id} not found."
            )
        reply = await running.heartbeat(request)
        if running.group.is_new and not running.offsets and shard.groups.get(group_id) is running:
            del shard.groups[group_id]  # its first member was refused
        return reply

    # Offsets

    async def commit_offsets(self, group_id: str, request: CommitRequest) -> dict[TopicPartition, ErrorCode]:
        """Commit offsets. Without a generation, the group must be empty or not exist."""
        running = self._find(group_id, named=False)
        if isinstance(running, ErrorCode):
            return dict.fromkeys(request.offsets, running)
        if running is None:
            if request.generation >= 0:
                return dict.fromkeys(request.offsets, ErrorCode.ILLEGAL_GENERATION)
            running = self._shards[self._partition_for(group_id)].create(group_id)
        return await running.commit(request, self._config.offset_metadata_max_bytes)

    def end_transaction(self, partition: int, producer_id: int, *, commits: bool) -> None:
        """Let the offsets of a transaction count, or drop them: its end is written in that partition."""
        if (shard := self._shards.get(partition)) is not None:
            for running in shard.groups.values():
                running.stored.end_transaction(producer_id, commits=commits)

    async def fetch_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        member_id: str | None = None,
        member_epoch: int = -1,
    ) -> FetchedOffsets:
        """Return the committed offsets of these partitions, or of all that have one.

        A member of the protocol `consumer` names itself, and must be in its present epoch.
        """
        running = self._find(group_id, named=False)
        if isinstance(running, ErrorCode):
            return FetchedOffsets(running, {})
        if isinstance(running, RunningConsumerGroup) and (member_id is not None or member_epoch >= 0):
            error = running.group.fetch_error(member_id or "", member_epoch)
            if error is not ErrorCode.NONE:
                return FetchedOffsets(error, {})
        committed = running.offsets if running is not None else {}
        wanted = committed if partitions is None else partitions
        offsets = {
            partition: OffsetToCommit(value.offset, value.leader_epoch, value.metadata)
            if (value := committed.get(partition))
            else None
            for partition in wanted
        }
        unstable: frozenset[TopicPartition] = frozenset()
        if running is not None and running.stored.is_in_transaction:
            unstable = frozenset(each for each in offsets if running.stored.is_unstable(each))
        return FetchedOffsets(ErrorCode.NONE, offsets, unstable)

    async def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> DeleteOffsetsReply:
        """Delete an empty group's offsets, or those of topics that no member is subscribed to."""
        running = self._find(group_id)
        if isinstance(running, ErrorCode):
            return DeleteOffsetsReply(running, {})
        if running is None:
            return DeleteOffsetsReply(ErrorCode.GROUP_ID_NOT_FOUND, {})
        in_use = running.topics_in_use()
        if isinstance(in_use, ErrorCode):
            return DeleteOffsetsReply(in_use, {})
        results = {
            partition: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
            if in_use is None or partition.topic in in_use
            else ErrorCode.NONE
            for partition in partitions
        }
        free = [partition for partition, error in results.items() if error is ErrorCode.NONE]
        error = await running.forget(free)
        return DeleteOffsetsReply(ErrorCode.NONE, results | dict.fromkeys(free, error))

    async def partitions_deleted(self, partitions: Iterable[TopicPartition]) -> None:
        """Delete the offsets of deleted partitions in all groups."""
        gone = frozenset(partitions)
        for running in self._running():
            if not gone.isdisjoint(running.offsets):
                await running.forget(gone.intersection(running.offsets))

    # Administration

    async def describe(self, group_id: str) -> GroupDescription:
        running = self._find(group_id, named=False)
        if isinstance(running, ErrorCode):
            return GroupDescription(error=running, group_id=group_id)
        if running is None or isinstance(running, RunningConsumerGroup):
            return GroupDescription(group_id=group_id, state=GroupState.DEAD)
        return describe_classic(running.group)

    async def describe_consumer(self, group_id: str) -> ConsumerGroupDescription:
        """Describe a group of the protocol `consumer`; others are not found."""
        running = self._find(group_id)
        if isinstance(running, ErrorCode):
            return ConsumerGroupDescription(error=running, group_id=group_id)
        if not isinstance(running, RunningConsumerGroup):
            what = f"Group {group_id} {'not found' if running is None else 'is not a consumer group'}."
            return ConsumerGroupDescription(
                error=ErrorCode.GROUP_ID_NOT_FOUND, message=what, group_id=group_id
            )
        return running.group.describe()

    async def list(self) -> ListReply:
        loading = any(shard.is_loading for shard in self._shards.values())
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NONE
        listed = (
            GroupListing(each.group.id, each.protocol_type, each.state_name, each.type_name)
            for each in self._running()
        )
        return ListReply(error, tuple(listed))

    async def delete_groups(self, group_ids: Iterable[str]) -> dict[str, ErrorCode]:
        """Delete groups without members, and their offsets."""
        return {group_id: await self._delete_group(group_id) for group_id in group_ids}

    async def _delete_group(self, group_id: str) -> ErrorCode:
        running = self._find(group_id, named=False)
        if isinstance(running, ErrorCode):
            return running
        if running is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if not running.is_empty:
            return ErrorCode.NON_EMPTY_GROUP
        return await self._end(running, tuple(running.offsets))

    # Expiry

    async def expire(self) -> None:
        """Delete offsets past their retention, and empty groups without offsets."""
        now_ms, retention_ms = self._clock.now_ms(), self._config.offsets_retention_ms
        for running in self._running():
            if running.stored.commits_under_way or running.stored.is_in_transaction:
                continue
            old = running.expired(now_ms, retention_ms)
            if running.may_end and len(old) == len(running.offsets):
                await self._end(running, old)
            elif old:
                await running.forget(old)

    async def _end(self, running: AnyGroup, offsets: Sequence[TopicPartition]) -> ErrorCode:
        """Delete a group. Its name is free at once; tombstones are written before a new group's records."""
        running.stop()
        del self._shards[self._partition_for(running.group.id)].groups[running.group.id]
        return await running.forget(offsets)

    def _expiry_is_due(self) -> None:
        self.start()
        task = asyncio.create_task(self.expire())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Finding a group

    def _running(self) -> tuple[AnyGroup, ...]:
        """Return a copy of all groups, because they may change during an iteration."""
        return tuple(running for shard in self._shards.values() for running in shard.groups.values())

    def _find(self, group_id: str, *, named: bool = True) -> AnyGroup | ErrorCode | None:
        """Return the group, None if there is none, or the error code.

        Only members' requests need a group id: old clients could commit offsets under an empty one.
        """
        if (named and not group_id) or len(group_id.encode()) > _LONGEST_GROUP_ID_BYTES:
            return ErrorCode.INVALID_GROUP_ID
        shard = self._shards.get(self._partition_for(group_id))
        if shard is None:
            return ErrorCode.NOT_COORDINATOR
        if shard.is_loading:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return shard.groups.get(group_id)

    def _join_error(self, group_id: str, request: JoinRequest) -> ErrorCode | None:
        found = self._find(group_id)
        if isinstance(found, ErrorCode):
            return found
        shortest, longest = self._config.min_session_timeout_ms, self._config.max_session_timeout_ms
        if not shortest <= request.session_timeout_ms <= longest:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        names = (request.client_id, request.client_host, request.instance_id or "", request.protocol_type)
        if any(len(name.encode()) > _LONGEST_NAME_BYTES for name in names):
            return ErrorCode.INVALID_REQUEST
        return None
