"""A leader's changes of its ISR, written to the store, and the notes that tell the controller of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from restow.cluster.store import BadVersion, NoNode, StoreError, UnreadableNode
from restow.cluster.store.znodes import IsrChangeNotification, PartitionStateZNode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from restow.cluster.broker.tasks import Tasks
    from restow.cluster.store import Store
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock

_GATHER_S = 0.05


class StoreIsrWriter:
    """Conditional on the version that the leader knows: only the current leader can change a partition."""

    def __init__(self, store: Store, clock: Clock, tasks: Tasks, controller_epoch: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._tasks = tasks
        self._controller_epoch = controller_epoch
        self._changed: dict[TopicPartition, None] = {}

    async def write(
        self,
        topic_partition: TopicPartition,
        leader: int,
        leader_epoch: int,
        isr: Sequence[int],
        expected_znode_version: int,
    ) -> int | None:
        """The new version, or None if somebody else was faster. Raises StoreError if nobody knows.

        What was written by an earlier call whose answer got lost counts as written by this one.
        """
        state = PartitionStateZNode(
            leader=leader,
            leader_epoch=leader_epoch,
            isr=tuple(isr),
            controller_epoch=self._controller_epoch(),
        )
        path = PartitionStateZNode.path(*topic_partition)
        try:
            version = (await self._store.set(path, state.encode(), expected_znode_version)).version
        except NoNode:
            return None
        except BadVersion:
            version = expected_znode_version + 1
            if not await self._has_written(path, state, version):
                return None
        self._note(topic_partition)
        return version

    async def _has_written(self, path: str, wanted: PartitionStateZNode, version: int) -> bool:
        """Whether the node is what was to be written. A controller elected meanwhile makes no difference."""
        (node,) = await self._store.get_each([path])
        if node is None or node.stat.version != version:
            return False
        try:
            found = PartitionStateZNode.decode(node.data, path)
        except UnreadableNode:
            return False
        return replace(found, controller_epoch=wanted.controller_epoch) == wanted

    def _note(self, partition: TopicPartition) -> None:
        """Changes of one moment become one note."""
        if not self._changed:
            self._clock.call_later(_GATHER_S, lambda: self._tasks.start(self._notify(), "isr notes"))
        self._changed[partition] = None

    async def _notify(self) -> None:
        changed, self._changed = tuple(self._changed), {}
        try:
            await self._store.create(
                IsrChangeNotification.PREFIX, IsrChangeNotification(changed).encode(), sequential=True
            )
        except StoreError:
            for partition in changed:
                self._note(partition)
