"""Watches the states of reassigned partitions for ISR changes.

Many change almost at once, so changes that arrive while an event is still queued become part of that event.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.store.znodes import PartitionStateZNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from restow.cluster.store import Store, WatchEvent
    from restow.model import TopicPartition


class IsrWatch:
    """The reassigned partitions and their pending ISR changes. `changed` queues the event that takes them."""

    def __init__(self, store: Store, changed: Callable[[], object]) -> None:
        self._store = store
        self._notify = changed
        self._moving: dict[TopicPartition, None] = {}
        self._watched: set[TopicPartition] = set()
        self._changed: dict[TopicPartition, None] = {}

    @property
    def moving(self) -> tuple[TopicPartition, ...]:
        """Return the partitions in the order in which their reassignments started."""
        return tuple(self._moving)

    def remember(self, partitions: Iterable[TopicPartition]) -> None:
        """Remember these partitions as reassigned, without a watch yet."""
        self._moving.update(dict.fromkeys(partitions))

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Watch these partitions, once each."""
        wanted = tuple(partitions)
        self.remember(wanted)
        new = [each for each in wanted if each not in self._watched]
        self._watched.update(new)
        await asyncio.gather(*map(self._set, new))

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget finished partitions. A watch that still fires is ignored."""
        for partition in partitions:
            self._moving.pop(partition, None)

    async def take(self) -> tuple[TopicPartition, ...]:
        """Return the changed partitions and watch them again before their states are read."""
        changed, self._changed = self._changed, {}
        found = tuple(each for each in changed if each in self._moving)
        await self.add(found)
        return found

    async def _set(self, partition: TopicPartition) -> None:
        await self._store.watch_data(PartitionStateZNode.path(*partition), partial(self._fired, partition))

    def _fired(self, partition: TopicPartition, _: WatchEvent) -> None:
        self._watched.discard(partition)
        if partition not in self._moving:
            return
        if not self._changed:
            self._notify()
        self._changed[partition] = None
