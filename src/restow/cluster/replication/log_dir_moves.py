"""Moves of replicas to another log dir of the same broker (KIP-113).

    request ──► an empty copy ──► copied in steps ──► caught up ──► swapped, between two requests
      │            └── request for another log dir ──► the copy is deleted
      └── no such replica yet ──► it will be created there

One task does it for the whole broker, one partition after the other, at the rate of
replica.alter.log.dirs.io.max.bytes.per.second. Reads and writes go on meanwhile. A copy found at the broker's
start continues once the controller has confirmed its replica.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from restow.cluster.log.directory import future_name
from restow.cluster.log.errors import LogError
from restow.cluster.log.future_copy import copy_some
from restow.cluster.log.futures import MoveStep
from restow.cluster.replication.partition import HostedPartition, Role
from restow.cluster.replication.values import PartitionRefused
from restow.wire.batches import CorruptBatch
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.cluster.log import LogManager
    from restow.cluster.log.directory import LogDirectory
    from restow.cluster.quotas import Quota
    from restow.cluster.replication.manager import ReplicaManager
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock

log = logging.getLogger(__name__)

_MOST_AT_ONCE_BYTES = 1 << 20
_LOOK_AGAIN_S = 0.5
_LONGEST_NAME = 255


class LogDirMoves:
    """The moves of one broker. `ask` adds one; `run` carries them out."""

    def __init__(self, replicas: ReplicaManager, clock: Clock, quota: Quota) -> None:
        self._replicas = replicas
        self._clock = clock
        self._quota = quota
        self._asked = asyncio.Event()

    @property
    def _logs(self) -> LogManager:
        return self._replicas.logs

    # Requests

    def ask(self, topic_partition: TopicPartition, path: str) -> None:
        """Request a move to that log dir. Raises PartitionRefused, also for a future replica."""
        if len(future_name(topic_partition)) > _LONGEST_NAME:
            raise PartitionRefused(ErrorCode.INVALID_TOPIC_EXCEPTION)
        target = self._online(path)
        if path in self._logs.cordoned():
            raise PartitionRefused(ErrorCode.INVALID_REPLICA_ASSIGNMENT)
        partition = self._replicas.find(topic_partition)
        if _is_offline(partition):
            raise PartitionRefused(ErrorCode.KAFKA_STORAGE_ERROR)
        futures = self._logs.futures
        growing_in = futures.directory_of(topic_partition)
        try:
            if growing_in is not None and growing_in is not target and isinstance(partition, HostedPartition):
                log.info("%s no longer moves to %s", topic_partition, growing_in.path)
                futures.drop(topic_partition)
            if self._logs.get(topic_partition) is None:
                self._logs.prefer(topic_partition, path)
            if not isinstance(partition, HostedPartition):
                raise PartitionRefused(ErrorCode.REPLICA_NOT_AVAILABLE)
            if target is not self._logs.directory_of(topic_partition) and growing_in is not target:
                log.info("%s starts to move to %s", topic_partition, path)
                self._logs.begin_move(topic_partition, target)
        except LogError as error:
            raise PartitionRefused(ErrorCode.KAFKA_STORAGE_ERROR) from error
        self._asked.set()

    def _online(self, path: str) -> LogDirectory:
        for directory in self._logs.directories:
            if directory.path == path:
                if directory.is_online:
                    return directory
                raise PartitionRefused(ErrorCode.KAFKA_STORAGE_ERROR)
        raise PartitionRefused(ErrorCode.LOG_DIR_NOT_FOUND)

    # Execution

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            partition = self._next()
            if partition is None:
                await self._until_there_is_more()
            elif wait_s := self._quota.wait_s():
                await self._clock.sleep(min(wait_s, _LOOK_AGAIN_S))
            else:
                self._carry_on(partition)
                await self._clock.sleep(0)

    async def _until_there_is_more(self) -> None:
        """Wait for work. Copies of replicas that the controller has not confirmed are polled."""
        if self._logs.futures.partitions:
            await self._clock.sleep(_LOOK_AGAIN_S)
        else:
            self._asked.clear()
            await self._asked.wait()

    def _next(self) -> HostedPartition | None:
        """Return the first partition that can continue, so that moves finish one by one."""
        for topic_partition in sorted(self._logs.futures.partitions):
            partition = self._replicas.partition(topic_partition)
            if partition is not None and not _is_offline(partition):
                return partition
        return None

    def _carry_on(self, partition: HostedPartition) -> None:
        """Copy one step, and swap if the copy is complete. A failed disk ends the move."""
        topic_partition = partition.topic_partition
        futures = self._logs.futures
        future = futures.get(topic_partition)
        if future is None:
            return
        try:
            most = min(_MOST_AT_ONCE_BYTES, self._quota.room_bytes())
            size = copy_some(partition.log, future, most)
            if size:
                self._quota.note(size)
                futures.step(MoveStep.L2)
            if future.end_offset >= partition.log.end_offset:
                partition.log = self._logs.replace_with_future(topic_partition)
                log.info("%s has moved to %s", topic_partition, partition.log.directory)
        except (LogError, CorruptBatch) as error:
            log.warning("%s cannot be moved to another log dir: %s", topic_partition, error)
            self._give_up(topic_partition)

    def _give_up(self, topic_partition: TopicPartition) -> None:
        try:
            self._logs.futures.drop(topic_partition)
        except LogError as error:
            log.warning("its incomplete copy cannot be removed: %s", error)


def _is_offline(partition: HostedPartition | ErrorCode) -> bool:
    if isinstance(partition, HostedPartition):
        return partition.role is Role.OFFLINE
    return partition is ErrorCode.KAFKA_STORAGE_ERROR
