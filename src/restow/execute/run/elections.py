"""Elect preferred leaders, a few at a time: each election makes clients reconnect."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from restow.execute.run.steps import partitions_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.client import Admin
    from restow.execute.journal.ledger import RunJournal
    from restow.execute.progress.status import Tell
    from restow.model import BrokerId, Partition, TopicPartition
    from restow.runtime.clock import Clock

_GRACE_S = 5.0
"""How long brokers may not know of new replicas, or of a new leader."""


_NOTHING: Mapping[TopicPartition, Partition] = MappingProxyType({})


class Elections:
    """Partitions that should be led by their first replica; `replicas` are their target replicas.

    A broker's metadata may lag behind the controller. So a partition is done when its preferred leader is
    seen leading, or after a grace period.
    """

    def __init__(
        self,
        admin: Admin,
        clock: Clock,
        book: RunJournal,
        replicas: Mapping[TopicPartition, tuple[BrokerId, ...]],
        at_once: int,
        tell: Tell,
    ) -> None:
        self._admin, self._clock, self._run_journal, self._tell = admin, clock, book, tell
        self._replicas, self._at_once = replicas, at_once
        self._waiting: dict[TopicPartition, float] = {}
        """Since when each waits."""
        self._held: set[TopicPartition] = set()
        self._arrived: set[TopicPartition] = set()
        self._asked_again = False

    @property
    def over(self) -> bool:
        return not self._waiting

    def line_up(self, names: Iterable[TopicPartition]) -> None:
        """Add partitions that have arrived."""
        new = dict.fromkeys(names, self._clock.monotonic_s())
        self._arrived.update(new)
        self._waiting.update(new)

    def line_up_again(self, seen: Mapping[TopicPartition, Partition]) -> bool:
        """Add, once, the partitions that another replica leads by now; return whether there are any.

        A broker that has died during the run and come back has lost its leaders.
        """
        lost = [name for name in sorted(self._arrived) if self._needs_it(name, seen.get(name))]
        if self._asked_again or not lost:
            return False
        self._asked_again = True
        self._held.difference_update(lost)
        self.line_up(lost)
        return True

    async def hold(self, seen: Mapping[TopicPartition, Partition] = _NOTHING) -> None:
        """Elect leaders for the next partitions that need it; those just `seen` are not asked for again."""
        some = list(self._waiting)[: self._at_once]
        if not some:
            return
        now = {**seen, **await partitions_now(self._admin, {n.topic for n in some if n not in seen})}
        due = [name for name in some if name not in self._held and self._needs_it(name, now.get(name))]
        for name in some:
            since_s = self._waiting.pop(name)
            if not self._is_done(name, now.get(name), since_s):
                self._waiting[name] = since_s
        if not due:
            return
        self._run_journal.write("elect", leaders=[[*name, now[name].leader] for name in due])
        outcome = await self._admin.elect_leaders(due)
        self._held.update(due)
        for name, error in outcome.items():
            if error is None:
                self._tell("elected", partition=str(name), leader=now[name].replicas[0])
            else:
                self._waiting.pop(name, None)
                self._tell("not elected", partition=str(name), why=str(error))

    def _needs_it(self, name: TopicPartition, seen: Partition | None) -> bool:
        return seen is not None and seen.replicas == self._replicas[name] and may_be_elected(seen)

    def _is_done(self, name: TopicPartition, seen: Partition | None, since_s: float) -> bool:
        if seen is None or self._clock.monotonic_s() - since_s > _GRACE_S:
            return True
        return seen.replicas == self._replicas[name] and seen.leader == seen.replicas[0]


def may_be_elected(partition: Partition) -> bool:
    """Return whether the first replica is not the leader, but in sync."""
    first = partition.replicas[0]
    return partition.leader != first and first in partition.isr
