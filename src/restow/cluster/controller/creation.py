"""Topics that appear, get more partitions, or are removed by hand.

C1  the new partitions are in the context
C2  partitions and replicas New
C3  leaders elected and sent to brokers, everything Online
"""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cluster.controller.guarded import readable
from restow.cluster.controller.states import PartitionState, ReplicaState
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import TermPart, Tools
from restow.cluster.store import BadVersion, Set, StoreError
from restow.cluster.store.znodes import TopicZNode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from restow.cluster.controller.deletion import Deletion
    from restow.cluster.controller.listeners import Listeners
    from restow.cluster.controller.reassignment.reassignment import Reassignment
    from restow.model import TopicPartition

_log = logging.getLogger(__name__)


class Topics(TermPart):
    """Keeps the context's topics equal to the store's."""

    def __init__(self, tools: Tools, deletion: Deletion, reassignment: Reassignment) -> None:
        super().__init__(tools)
        self._deletion = deletion
        self._reassignment = reassignment

    async def start(self, listeners: Listeners) -> None:
        """Read every topic and its leaders for a new controller. The states are computed afterwards."""
        names = await self._tools.store.read.children(TopicZNode.PARENT)
        await listeners.watch_topics(names)
        for name, topic in (await self._read(names)).items():
            self._context.know_topic(name, topic)
        self._context.leaderships.update(await self._tools.nodes.read(self._context.assignments))

    async def changed(self, listeners: Listeners) -> None:
        """Handle created and removed topics."""
        names = await self._tools.store.read.children(TopicZNode.PARENT)
        for name in sorted(self._context.topic_ids.keys() - set(names)):
            await self.removed(name)
        new = [name for name in names if name not in self._context.topic_ids]
        if not new:
            return
        await listeners.watch_topics(new)
        partitions: list[TopicPartition] = []
        for name, topic in (await self._read(new)).items():
            partitions += self._context.know_topic(name, topic)
        await self._create(partitions)
        await self._deletion.requested()

    async def grown(self, name: str) -> None:
        """Handle a changed topic znode. A topic that is being deleted loses the partitions it was given."""
        topic = (await self._read((name,))).get(name)
        if topic is None:
            return
        if topic.topic_id != self._context.topic_ids.get(name, topic.topic_id):
            await self.removed(name)
        known = self._context.topic_node(name)
        if not topic.partitions.keys() - known.keys():
            return
        if name in self._context.deleting:
            _log.warning("topic %s is being deleted and gets no more partitions", name)
            before = TopicZNode(topic_id=self._context.topic_ids[name], partitions=known)
            await self._tools.store.multi([Set(TopicZNode.path(name), before.encode())])
            return
        await self._create(self._context.know_topic(name, topic))
        await self._deletion.requested()

    async def removed(self, name: str) -> None:
        """Handle a topic znode removed by hand. The brokers keep their replicas."""
        if name in self._context.topic_ids:
            _log.warning("the znode of topic %s was removed by hand", name)
            self._context.forget_topic(name)
            await self._reassignment.forget_gone()

    async def _create(self, partitions: Collection[TopicPartition]) -> None:
        if not partitions:
            return
        _log.info("%d new partitions, the first is %s", len(partitions), next(iter(partitions)))
        await self._tools.at(ControllerStep.C1)
        replicas = list(self._context.replicas(partitions))
        await self._partitions.move(partitions, PartitionState.NEW)
        await self._replicas.move(replicas, ReplicaState.NEW)
        await self._tools.at(ControllerStep.C2)
        await self._partitions.move(partitions, PartitionState.ONLINE)
        await self._replicas.move(replicas, ReplicaState.ONLINE)
        await self._tools.at(ControllerStep.C3)

    async def _read(self, names: Iterable[str]) -> dict[str, TopicZNode]:
        """Read these topics' znodes. An unreadable one is logged and left out."""
        wanted = tuple(names)
        paths = [TopicZNode.path(name) for name in wanted]
        nodes = await self._tools.store.read.get_each(paths)
        found: dict[str, TopicZNode] = {}
        nameless: dict[str, int] = {}
        for name, path, node in zip(wanted, paths, nodes, strict=True):
            topic = readable(TopicZNode.decode, node, path)
            if node is None or topic is None:
                continue
            found[name] = topic
            if topic.topic_id is None:
                nameless[name] = node.stat.version
        return found | await self._give_ids({name: found[name] for name in nameless}, nameless)

    async def _give_ids(
        self, topics: dict[str, TopicZNode], versions: dict[str, int]
    ) -> dict[str, TopicZNode]:
        """Give an id to topics without one, written by hand or before Kafka 2.8. One that changes meanwhile
        gets its id in the event of that change.
        """
        if not topics:
            return {}
        named = {
            name: replace(topic, topic_id=self._context.topic_ids.get(name) or self._tools.new_topic_id())
            for name, topic in topics.items()
        }
        answers = await self._tools.store.multi_each(
            [(Set(TopicZNode.path(name), topic.encode(), versions[name]),) for name, topic in named.items()]
        )
        for name, answer in zip(tuple(named), answers, strict=True):
            if isinstance(answer, StoreError):
                if not isinstance(answer, BadVersion):
                    _log.error("topic %s was given no id: %s", name, answer)
                del named[name]
        return named
