"""Dynamic configs in the store: read at start, followed through change notifications, written on request.

A writer sets the entity's znode, then leaves a notification under `/config/changes`, so that all brokers read
the entity again. Notifications are numbered; a broker that missed some reads everything.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from restow.cluster.store import BadVersion, Create, Delete, NodeExists, NoNode, Set, UnreadableNode
from restow.cluster.store.znodes import ConfigChange, EntityConfig

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from restow.cluster.config.configs import BrokerConfigs
    from restow.cluster.store import Operation, Store, StoreNode, WatchEvent
    from restow.cluster.tasks import Tasks

log = logging.getLogger(__name__)

_NOTES_KEPT = 100
_TOPICS = "topics"
_BROKERS = "brokers"


class ConfigStore:
    """Keeps one broker's `BrokerConfigs` equal to the store, and writes changes."""

    def __init__(
        self,
        broker_id: int,
        configs: BrokerConfigs,
        store: Store,
        tasks: Tasks,
        on_change: Callable[[str | None], None],
    ) -> None:
        """`on_change` gets the topic whose configs changed, or None for the broker's own."""
        self._broker_id = broker_id
        self._configs = configs
        self._store = store
        self._tasks = tasks
        self._on_change = on_change
        self._known: set[str] = set()
        self._last_note = -1

    # Reading

    async def start(self) -> None:
        """Read everything, then follow notifications. One that comes meanwhile is read twice, not missed."""
        await self._store.watch_children(ConfigChange.PARENT, self._noted)
        self._last_note = max(map(_number, await self._store.children(ConfigChange.PARENT)), default=-1)
        await self._read_all()

    async def learn(self, topics: Iterable[str]) -> None:
        """Read the configs of new topics, because their creation leaves no notification."""
        await self._read_topics([topic for topic in topics if topic not in self._known])

    def forget(self, topic: str) -> None:
        """Forget a deleted topic, whose name may be used again."""
        self._known.discard(topic)
        self._configs.drop_topic(topic)

    def _noted(self, _: WatchEvent) -> None:
        self._tasks.start(self._follow(), "config changes")

    async def _follow(self) -> None:
        await self._store.watch_children(ConfigChange.PARENT, self._noted)
        notes = {_number(name): name for name in await self._store.children(ConfigChange.PARENT)}
        new = sorted(number for number in notes if number > self._last_note)
        if not new:
            return
        missed = new[0] > self._last_note + 1 and min(notes) == new[0]
        self._last_note = new[-1]
        if missed:
            await self._read_all()
            return
        paths = [f"{ConfigChange.PARENT}/{notes[number]}" for number in new]
        for path, node in zip(paths, await self._store.get_each(paths), strict=True):
            if node is not None:
                await self._read_noted(path, node)

    async def _read_noted(self, path: str, node: StoreNode) -> None:
        try:
            kind, _, name = ConfigChange.decode(node.data, path).entity_path.partition("/")
        except UnreadableNode as error:
            log.warning("skipped: %s", error)
            return
        if kind == _TOPICS:
            await self._read_topics([name], self._on_change)
        elif kind == _BROKERS:
            await self._read_brokers()

    async def _read_all(self) -> None:
        await self._read_brokers()
        await self._read_topics(await self._store.children(EntityConfig.TOPICS), self._on_change)

    async def _read_topics(
        self, names: Sequence[str], on_change: Callable[[str], None] = lambda _: None
    ) -> None:
        paths = [EntityConfig.topic_path(name) for name in names]
        for name, path, node in zip(names, paths, await self._store.get_each(paths), strict=True):
            self._configs.set_topic(name, _values(path, node))
            self._known.add(name)
            on_change(name)

    async def _read_brokers(self) -> None:
        own, of_all = EntityConfig.broker_path(self._broker_id), EntityConfig.broker_path(None)
        found = await self._store.get_each([own, of_all])
        self._configs.set_broker(_values(own, found[0]))
        self._configs.set_all_brokers(_values(of_all, found[1]))
        self._on_change(None)

    # On request

    async def users(self) -> tuple[str, ...]:
        """Return the users who have configs."""
        names = await self._store.children(EntityConfig.USERS)
        return tuple(EntityConfig.user_of(name) for name in names if name != EntityConfig.ALL_BROKERS)

    async def read(self, paths: Sequence[str]) -> list[Mapping[str, str]]:
        """Return the configs in these znodes; empty where there is none."""
        nodes = await self._store.get_each(paths)
        return [_values(path, node) for path, node in zip(paths, nodes, strict=True)]

    # Writing

    async def alter(
        self, path: str, change: Callable[[Mapping[str, str]], Mapping[str, str]], *, only_check: bool
    ) -> None:
        """Replace the configs in a znode by the result of `change`, which may raise InvalidConfig.

        They are written with a notification. After a conflict, the change applies to the new content.
        """
        entity = path.removeprefix(f"{EntityConfig.PARENT}/")
        while True:
            (node,) = await self._store.get_each([path])
            after = EntityConfig(change(_values(path, node))).encode()
            if only_check:
                return
            write: Operation = Create(path, after) if node is None else Set(path, after, node.stat.version)
            note = Create(ConfigChange.PREFIX, ConfigChange(entity).encode(), sequential=True)
            try:
                await self._store.multi([write, note])
            except (BadVersion, NodeExists, NoNode):
                continue
            await self._tidy_up()
            return

    async def _tidy_up(self) -> None:
        """Remove notifications that every broker has read long ago."""
        names = sorted(await self._store.children(ConfigChange.PARENT), key=_number)
        old = names[:-_NOTES_KEPT]
        if old:
            await self._store.multi_each([(Delete(f"{ConfigChange.PARENT}/{name}"),) for name in old])


def _values(path: str, node: StoreNode | None) -> Mapping[str, str]:
    """Return a znode's configs; empty if it is missing or unreadable."""
    if node is None:
        return {}
    try:
        return EntityConfig.decode(node.data, path).values
    except UnreadableNode as error:
        log.warning("skipped: %s", error)
        return {}


@lru_cache(maxsize=1024)
def _number(name: str) -> int:
    """Return a notification's number; -1 for a foreign name. All are read again after every change."""
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else -1
