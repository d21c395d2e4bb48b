"""Committed records: what a high watermark once covered stays the same in every log, for ever.

The checker remembers every batch below any high watermark that it has seen, by its base offset. It compares
each replica with that memory, each batch once: a follower up to its own high watermark, a member of the ISR
up to the highest one seen. Every member of the ISR also has every acknowledged record. Compacted topics are
left out, because the cleaner rewrites their batches. No workload deletes records.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.cluster.replication.partition import Role
from restow.model import TopicPartition
from restow.wire.batches import scan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.log import PartitionLog
    from restow.cluster.replication.partition import HostedPartition
    from restow.cluster.replication.values import LeaderAndIsrPartition

_READ_BYTES = 1 << 20
_NEVER = None, 0


class PartitionKey(NamedTuple):
    """A partition of one life of a topic."""

    topic: str
    topic_id: str | None
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


ReplicaAt: TypeAlias = "tuple[int, HostedPartition]"
"""A broker and its replica."""


class _Memory:
    """The committed batches of one partition."""

    __slots__ = ("acknowledged", "batches", "compared", "end", "latest_epoch")

    def __init__(self) -> None:
        self.compared: dict[int, tuple[PartitionLog, int]] = {}
        """The log of each broker, and the offset up to which it was compared."""
        self.batches: dict[int, int] = {}
        """Checksums by base offset."""
        self.end = 0
        """The highest high watermark so far."""
        self.acknowledged = 0
        """The end of the acknowledged records."""
        self.latest_epoch = -1


class CommittedRecords:
    """The committed records of a cluster, and how far each replica was compared with them."""

    def __init__(self) -> None:
        self._memories: dict[PartitionKey, _Memory] = {}
        self._present: dict[tuple[str, int], PartitionKey] = {}
        self._newly_acknowledged: dict[TopicPartition, None] = {}

    def acknowledge(self, topic: str, partition: int, end: int) -> bool:
        """Note that the records before this offset are acknowledged, in the present life of the topic.

        Return whether the partition is known; otherwise it must be said again.
        """
        key = self._present.get((topic, partition))
        if key is not None and end > self._memories[key].acknowledged:
            self._memories[key].acknowledged = end
            self._newly_acknowledged[TopicPartition(topic, partition)] = None
        return key is not None

    def newly_acknowledged(self) -> dict[TopicPartition, None]:
        """Return the partitions with acknowledgements since the last call."""
        found, self._newly_acknowledged = self._newly_acknowledged, {}
        return found

    def check(
        self, key: PartitionKey, replicas: Iterable[ReplicaAt], broken: list[str], *, anew: bool = False
    ) -> None:
        """Add to `broken` how replicas break the rule. With `anew`, compare all that they have."""
        memory = self._memories.get(key)
        if memory is None:
            memory = self._memories[key] = _Memory()
            self._present[key.topic, key.partition] = key
        usable = [each for each in replicas if each[1].role is not Role.OFFLINE]
        for broker, partition in usable:
            log = partition.log
            if log.config.cleanup_compact:
                return
            memory.latest_epoch = max(memory.latest_epoch, partition.order.leader_epoch)
            if anew:
                memory.compared.pop(broker, None)
            _compare(key, memory, broker, log, log.high_watermark, broken)
        for _, partition in usable:
            if partition.role is Role.LEADER and partition.order.leader_epoch == memory.latest_epoch:
                _check_isr(key, memory, partition.order, usable, broken)


def _check_isr(
    key: PartitionKey,
    memory: _Memory,
    leader: LeaderAndIsrPartition,
    replicas: list[ReplicaAt],
    broken: list[str],
) -> None:
    """Every in-sync replica has everything that was ever committed."""
    isr, epoch, committed = leader.isr, leader.leader_epoch, max(memory.end, memory.acknowledged)
    for broker, partition in replicas:
        if broker in isr and partition.order.leader_epoch == epoch:
            log = partition.log
            if log.start_offset > 0:
                broken.append(
                    f"{key} on broker {broker} starts at {log.start_offset}, but nobody deleted records"
                )
            if log.end_offset < committed:
                broken.append(
                    f"{key} on broker {broker} is in sync in epoch {epoch} and ends at {log.end_offset}, "
                    f"but {memory.end} was committed and {memory.acknowledged} acknowledged"
                )
            _compare(key, memory, broker, log, memory.end, broken)


def _compare(
    key: PartitionKey, memory: _Memory, broker: int, log: PartitionLog, upto: int, broken: list[str]
) -> None:
    """Compare a replica up to this offset, from where it was compared last; add what differs to `broken`."""
    end = log.end_offset
    if upto > end:
        upto = end
    known, at = memory.compared.get(broker, _NEVER)
    if known is log and at == upto:
        return
    at = max(log.start_offset, min(at, upto) if known is log else 0)
    while at < upto:
        data = log.read(at, _READ_BYTES, upto)
        if not data:
            break
        for position, header in scan(data):
            base, following = header.base_offset, header.next_offset
            found = zlib.crc32(data[position : position + header.size])
            at = max(at, following)
            if base < log.start_offset:
                continue
            if base >= memory.end:
                memory.batches[base], memory.end = found, following
            elif memory.batches.get(base) != found:
                broken.append(
                    f"{key} on broker {broker} has another batch at offset {base} than was committed there"
                )
    memory.compared[broker] = log, at
