"""Embedded clusters in a thread of their own, for clients that block."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from restow.cluster.embedded import EmbeddedCluster
from restow.model import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    from restow.wire.metadata import PartitionMetadata

T = TypeVar("T")
WAIT_S = 120
_LOOKS = 20


class Running:
    """A running cluster; `do` runs a coroutine on its loop and waits for it."""

    def __init__(self, cluster: EmbeddedCluster, loop: asyncio.AbstractEventLoop) -> None:
        self.cluster = cluster
        self.bootstrap = cluster.bootstrap
        self._loop = loop

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_S)

    def stop(self, broker_id: int) -> None:
        self.do(self.cluster.stop_broker(broker_id))

    def kill(self, broker_id: int) -> None:
        self.do(self.cluster.kill_broker(broker_id))

    def start(self, broker_id: int) -> None:
        self.do(self.cluster.start_broker(broker_id))

    def leader_of(self, topic: str, partition: int = 0) -> int:
        """Return the leader on which all running brokers agree, or -1."""
        leaders = {-1 if each is None else each.leader_id for each in self._known(topic, partition)}
        return leaders.pop() if len(leaders) == 1 else -1

    def replicas_of(self, topic: str, partition: int = 0) -> set[int]:
        """Return the assigned replicas that the first running broker knows."""
        known = self._known(topic, partition)[0]
        return set() if known is None else set(known.replicas)

    def in_sync(self, topic: str, partition: int = 0) -> set[int]:
        """Return the ISR on which all running brokers agree, or an empty set."""
        isrs = {
            frozenset() if each is None else frozenset(each.isr) for each in self._known(topic, partition)
        }
        return set(isrs.pop()) if len(isrs) == 1 else set()

    def wait_until_known(self, topic: str, partitions: int = 1) -> None:
        """Wait until every running broker knows the leaders of a new topic's partitions.

        The controller answers as soon as its own broker knows them.
        """
        wait_until(
            lambda: all(self.leader_of(topic, number) >= 0 for number in range(partitions)),
            f"all brokers know the partitions of {topic}",
        )

    def _known(self, topic: str, partition: int) -> list[PartitionMetadata | None]:
        running = [each for each in self.cluster.brokers.values() if each.is_running]
        return [each.services.metadata.partition(TopicPartition(topic, partition)) for each in running]


@contextmanager
def embedded(brokers: int = 1, **options: Any) -> Iterator[Running]:
    """Run a cluster during the block, on uvloop as in production.

    Its store does not wait for the disk: that matters only if the machine dies.
    """
    import uvloop

    loop = uvloop.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="embedded cluster")
    thread.start()
    try:
        cluster = EmbeddedCluster(brokers, **{"fsync": False, **options})
        asyncio.run_coroutine_threadsafe(cluster.start(), loop).result(WAIT_S)
        try:
            yield Running(cluster, loop)
        finally:
            asyncio.run_coroutine_threadsafe(cluster.stop(), loop).result(WAIT_S)
            left = asyncio.run_coroutine_threadsafe(_tasks(), loop).result(WAIT_S)
            assert not left, f"the cluster left tasks behind: {left}"
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _tasks() -> list[str]:
    """Return the tasks that still run, a moment after everything should have ended.

    A cancelled task takes a few turns of the loop to end, and a moment may be a single one.
    """
    left: list[str] = []
    for _ in range(_LOOKS):
        await asyncio.sleep(0.05)
        left = [str(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if not left:
            break
    return left


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {WAIT_S} s: {what}"
        time.sleep(0.02)
