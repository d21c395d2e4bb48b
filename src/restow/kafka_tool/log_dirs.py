"""The progress of replicas that move between log dirs of the same broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.client import BrokerError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.client import BrokerLogDirs, TopicPartitionReplica
    from restow.model import BrokerId, TopicPartition


@frozen
class DirState:
    """One replica: its target, present and future log dirs. `silent` brokers do not answer."""

    replica: TopicPartitionReplica
    target: str
    current: str | None = None
    future: str | None = None
    silent: bool = False

    @property
    def active(self) -> bool:
        return self.future is not None

    @property
    def done(self) -> bool:
        """Whether its state will not change by itself."""
        return self.current is not None and self.future is None

    def __str__(self) -> str:
        partition, broker = self.replica
        if self.silent:
            return f"Partition {partition} cannot be found in any live log directory on broker {broker}."
        if self.current is None:
            return (
                f"Partition {partition} is not found in any live log dir on broker {broker}. "
                "There is likely an offline log directory on the broker."
            )
        if self.future == self.target:
            return f"Reassignment of replica {partition}-{broker} is still in progress."
        if self.future is not None:
            return (
                f"Partition {partition} on broker {broker} is being moved to log dir {self.future} "
                f"instead of {self.target}."
            )
        if self.current == self.target:
            return f"Reassignment of replica {partition}-{broker} completed successfully."
        return (
            f"Partition {partition} on broker {broker} is not being moved from log dir {self.current} "
            f"to {self.target}."
        )


def states(
    targets: Mapping[TopicPartitionReplica, str], disks: Mapping[BrokerId, BrokerLogDirs | BrokerError]
) -> tuple[DirState, ...]:
    """Return the state of each target, as its broker reports it, in order."""
    current = places(disks)
    future = places(disks, future=True)
    return tuple(
        DirState(
            replica=replica,
            target=path,
            current=current.get(replica),
            future=future.get(replica),
            silent=isinstance(disks.get(replica.broker), BrokerError) or replica.broker not in disks,
        )
        for replica, path in sorted(targets.items())
    )


def places(
    disks: Mapping[BrokerId, BrokerLogDirs | BrokerError], *, future: bool = False
) -> dict[tuple[TopicPartition, BrokerId], str]:
    """Return the log dir of every replica that brokers report."""
    return {
        (each.partition, broker): each.log_dir
        for broker, answer in disks.items()
        if not isinstance(answer, BrokerError)
        for each in answer.replicas
        if each.future is future
    }
