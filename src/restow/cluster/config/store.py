"""Dynamic configs in the store: read at start, followed through change notifications, written on request.

A writer sets the entity's znode, then leaves a notification under `/config/changes`, so that all brokers read
the entity again. Notifications are numbered; a broker that missed some reads everything.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from restow.cluster.store import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    NotEmpty,
    Set,
    UnreadableNode,
)
from restow.cluster.store.znodes import ConfigChange, EntityConfig

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from restow.cluster.config.configs import BrokerConfigs
    from restow.cluster.quotas.store import QuotaStore
    from restow.cluster.store import Operation, Store, StoreNode, WatchEvent
    from restow.cluster.tasks import Tasks

    Writing: TypeAlias = Callable[[str, StoreNode | None, Mapping[str, str]], Awaitable[Sequence[Operation]]]

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
        quotas: QuotaStore,
    ) -> None:
        """`on_change` gets the topic whose configs changed, or None for the broker's own."""
        self._broker_id = broker_id
        self._configs = configs
        self._store = store
        self._tasks = tasks
        self._on_change = on_change
        self._quotas = quotas
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
        else:
            await self._quotas.learn_of(f"{kind}/{name}")

    async def _read_all(self) -> None:
        await self._read_brokers()
        await self._read_topics(await self._store.children(EntityConfig.TOPICS), self._on_change)
        await self._quotas.learn()

    async def _read_topics(
        self, names: Sequence[str], on_change: Callable[[str], None] = lambda _: None
    ) -> None:
        paths = [EntityConfig.topic_path(name) for name in names]
        for name, path, node in zip(names, paths, await self._store.get_each(paths), strict=True):
            self._configs.set_topic(name, EntityConfig.values_at(path, node))
            self._known.add(name)
            on_change(name)

    async def _read_brokers(self) -> None:
        own, of_all = EntityConfig.broker_path(self._broker_id), EntityConfig.broker_path(None)
        found = await self._store.get_each([own, of_all])
        self._configs.set_broker(EntityConfig.values_at(own, found[0]))
        self._configs.set_all_brokers(EntityConfig.values_at(of_all, found[1]))
        self._on_change(None)

    # On request

    async def users(self) -> tuple[str, ...]:
        """Return the users who have configs."""
        names = await self._store.children(EntityConfig.USERS)
        return tuple(EntityConfig.unescaped(name) for name in names if name != EntityConfig.DEFAULT)

    async def read(self, paths: Sequence[str]) -> list[Mapping[str, str]]:
        """Return the configs in these znodes; empty where there is none."""
        nodes = await self._store.get_each(paths)
        return [EntityConfig.values_at(path, node) for path, node in zip(paths, nodes, strict=True)]

    # Writing

    async def alter(
        self,
        path: str,
        change: Callable[[Mapping[str, str]], Mapping[str, str]],
        *,
        only_check: bool,
        writing: Writing | None = None,
    ) -> None:
        """Replace the configs in a znode by the result of `change`, which may raise an error.

        They are written with a notification. After a conflict, the change applies to the new content.
        `writing` says how they are written, if not as they are.
        """
        entity = path.removeprefix(f"{EntityConfig.PARENT}/")
        while True:
            (node,) = await self._store.get_each([path])
            after = change(EntityConfig.values_at(path, node))
            if only_check:
                return
            writes = await (writing or _replaced)(path, node, after)
            note = Create(ConfigChange.PREFIX, ConfigChange(entity).encode(), sequential=True)
            try:
                await self._store.multi([*writes, note])
            except (BadVersion, NodeExists, NoNode, NotEmpty):
                continue
            await self._tidy_up()
            return

    async def _tidy_up(self) -> None:
        """Remove notifications that every broker has read long ago."""
        names = sorted(await self._store.children(ConfigChange.PARENT), key=_number)
        old = names[:-_NOTES_KEPT]
        if old:
            await self._store.multi_each([(Delete(f"{ConfigChange.PARENT}/{name}"),) for name in old])


async def _replaced(path: str, node: StoreNode | None, values: Mapping[str, str]) -> Sequence[Operation]:
    data = EntityConfig(values).encode()
    return [Create(path, data) if node is None else Set(path, data, node.stat.version)]


@lru_cache(maxsize=1024)
def _number(name: str) -> int:
    """Return a notification's number; -1 for a foreign name. All are read again after every change."""
    digits = name.rpartition("_")[2]
    return int(digits) if digits.isascii() and digits.isdigit() else -1
