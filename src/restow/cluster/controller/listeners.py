"""The znodes that a controller watches, and the events they cause.

A watch fires once, so it is set again before the znode is read. No change is missed.
"""

from __future__ import annotations

import asyncio
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.store.znodes import (
    BrokerRegistration,
    DeleteTopic,
    IsrChangeNotification,
    LogDirEvent,
    PreferredReplicaElection,
    ReassignPartitions,
    TopicZNode,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from restow.cluster.controller.events import Work
    from restow.cluster.store import Store, WatchEvent


class Subject(Enum):
    """The watched znodes by subject. Every topic's own znode is watched as well, for new partitions."""

    REASSIGNMENTS = ReassignPartitions.PATH
    ISR_CHANGES = IsrChangeNotification.PARENT
    PREFERRED_ELECTION = PreferredReplicaElection.PATH
    TOPICS = TopicZNode.PARENT
    DELETIONS = DeleteTopic.PARENT
    BROKERS = BrokerRegistration.PARENT
    LOG_DIRS = LogDirEvent.PARENT


_WATCHED_FOR_DATA = (Subject.REASSIGNMENTS, Subject.PREFERRED_ELECTION)
"""The others are watched for new children."""


class Listeners:
    """Sets the watches that have a handler, and sets them again whenever they fire."""

    def __init__(
        self,
        store: Store,
        enqueue: Callable[[str, Work], object],
        handlers: Mapping[Subject, Callable[[], Awaitable[None]]],
        topic_changed: Callable[[str], Awaitable[None]],
        topic_removed: Callable[[str], Awaitable[None]],
    ) -> None:
        self._store = store
        self._enqueue = enqueue
        self._handlers = handlers
        self._topic_changed = topic_changed
        self._topic_removed = topic_removed
        self._topics: set[str] = set()

    async def set_all(self) -> None:
        """Watch everything except the topics' own znodes, which are not known yet."""
        await asyncio.gather(*map(self._set, self._handlers))

    async def watch_topics(self, topics: Iterable[str]) -> None:
        """Watch these topics' own znodes, once each."""
        new = [topic for topic in topics if topic not in self._topics]
        self._topics.update(new)
        await asyncio.gather(*map(self._set_topic, new))

    async def _set(self, what: Subject) -> None:
        of_data = what in _WATCHED_FOR_DATA
        watch = self._store.watch_data if of_data else self._store.watch_children
        await watch(what.value, partial(self._fired, what))

    def _fired(self, what: Subject, _: WatchEvent) -> None:
        async def handle() -> None:
            await self._set(what)
            await self._handlers[what]()

        self._enqueue(what.name.lower().replace("_", " "), handle)

    async def _set_topic(self, topic: str) -> None:
        await self._store.watch_data(TopicZNode.path(topic), partial(self._topic_fired, topic))

    def _topic_fired(self, topic: str, _: WatchEvent) -> None:
        async def handle() -> None:
            self._topics.discard(topic)
            if await self._store.exists(TopicZNode.path(topic)):
                await self.watch_topics((topic,))
                await self._topic_changed(topic)
            else:
                # A topic created again meanwhile shows up among the topics, and is watched again.
                await self._topic_removed(topic)

        self._enqueue(f"topic {topic}", handle)
