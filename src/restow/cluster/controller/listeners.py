"""The znodes that a controller watches, and the events they cause.

A watch fires once, so it is set again before the znode is read. No change is missed.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
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


class WatchKind(Enum):
    """The kind of change to watch for."""

    CHILDREN = "children"
    DATA = "data"


@dataclass(frozen=True, slots=True)
class NodeListener:
    """A znode and the kind of change to watch for."""

    path: str
    kind: WatchKind


class Subject(Enum):
    """The subject of a change. Every topic's own znode is watched as well, for new partitions."""

    REASSIGNMENTS = NodeListener(ReassignPartitions.PATH, WatchKind.DATA)
    ISR_CHANGES = NodeListener(IsrChangeNotification.PARENT, WatchKind.CHILDREN)
    PREFERRED_ELECTION = NodeListener(PreferredReplicaElection.PATH, WatchKind.DATA)
    TOPICS = NodeListener(TopicZNode.PARENT, WatchKind.CHILDREN)
    DELETIONS = NodeListener(DeleteTopic.PARENT, WatchKind.CHILDREN)
    BROKERS = NodeListener(BrokerRegistration.PARENT, WatchKind.CHILDREN)
    LOG_DIRS = NodeListener(LogDirEvent.PARENT, WatchKind.CHILDREN)


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
        listener = what.value
        watch = partial(self._fired, what)
        if listener.kind is WatchKind.CHILDREN:
            await self._store.watch_children(listener.path, watch)
        else:
            await self._store.watch_data(listener.path, watch)

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
