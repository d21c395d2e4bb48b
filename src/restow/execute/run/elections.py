"""Leadership for first replicas, a few at a time: each election moves clients."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from restow.execute.run.under_way import partitions_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.client import Admin
    from restow.execute.journal.ledger import Book
    from restow.execute.progress.standing import Tell
    from restow.model import BrokerId, Partition, TopicPartition
    from restow.runtime.clock import Clock

_GRACE_S = 5.0
"""For so long brokers may not have heard of new replicas, or of a new leader."""


_NOTHING: Mapping[TopicPartition, Partition] = MappingProxyType({})


class Elections:
    """Partitions that should be led by their first replica, which `replicas` tells.

    Whoever was asked may know less than the controller; so a partition is done with when it is seen to be led
    as it should be, or has not come to be so for a while.
    """

    def __init__(
        self,
        admin: Admin,
        clock: Clock,
        book: Book,
        replicas: Mapping[TopicPartition, tuple[BrokerId, ...]],
        at_once: int,
        tell: Tell,
    ) -> None:
        self._admin, self._clock, self._book, self._tell = admin, clock, book, tell
        self._replicas, self._at_once = replicas, at_once
        self._waiting: dict[TopicPartition, float] = {}
        """Since when."""
        self._held: set[TopicPartition] = set()

    @property
    def over(self) -> bool:
        return not self._waiting

    def line_up(self, names: Iterable[TopicPartition]) -> None:
        """These have arrived."""
        self._waiting.update(dict.fromkeys(names, self._clock.monotonic_s()))

    async def hold(self, seen: Mapping[TopicPartition, Partition] = _NOTHING) -> None:
        """Those whose turn it is, as far as they need it and can; what was just `seen` is not asked again."""
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
        self._book.write("elect", leaders=[[*name, now[name].leader] for name in due])
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
    """Whether another than its first replica leads, and that one could."""
    first = partition.replicas[0]
    return partition.leader != first and first in partition.isr
