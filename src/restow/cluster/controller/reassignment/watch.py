"""The states of partitions that are being moved, watched for changes of their ISRs.

Many change at nearly the same time, so they are gathered: as long as an event waits for its turn, whatever
else changes becomes part of it.
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
    """Which partitions are being moved, and which of them have changed. `changed` is to ask for these."""

    def __init__(self, store: Store, changed: Callable[[], object]) -> None:
        self._store = store
        self._notify = changed
        self._moving: dict[TopicPartition, None] = {}
        self._watched: set[TopicPartition] = set()
        self._changed: dict[TopicPartition, None] = {}

    @property
    def moving(self) -> tuple[TopicPartition, ...]:
        """In the order in which they began."""
        return tuple(self._moving)

    def remember(self, partitions: Iterable[TopicPartition]) -> None:
        """These are being moved, but nobody watches them yet."""
        self._moving.update(dict.fromkeys(partitions))

    async def add(self, partitions: Iterable[TopicPartition]) -> None:
        """Watch these, each once however often it is asked for."""
        wanted = tuple(partitions)
        self.remember(wanted)
        new = [each for each in wanted if each not in self._watched]
        self._watched.update(new)
        await asyncio.gather(*map(self._set, new))

    def drop(self, partitions: Iterable[TopicPartition]) -> None:
        """These are done. A watch that still fires is of no interest."""
        for partition in partitions:
            self._moving.pop(partition, None)

    async def take(self) -> tuple[TopicPartition, ...]:
        """Those that changed, watched again before anybody reads them."""
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
