"""The embedded cluster in a thread of its own, for callers without a loop.

with ThreadedCluster(brokers=3) as cluster:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    cluster.stop_broker(1)
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, TypeVar

from restow.cluster.embedded import EmbeddedCluster
from restow.runtime.loop import new_loop

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType

T = TypeVar("T")


class ThreadedCluster:
    """Takes EmbeddedCluster's arguments. Every call blocks until it is done."""

    def __init__(self, brokers: int = 1, **options: Any) -> None:
        self._cluster = EmbeddedCluster(brokers, **options)
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="restow-cluster", daemon=True)

    @property
    def bootstrap(self) -> str:
        """All listeners, for `bootstrap.servers`."""
        return self._cluster.bootstrap

    def start(self) -> None:
        """Start all brokers. Returns when every broker knows every other."""
        self._thread.start()
        try:
            self._do(self._cluster.start())
        except BaseException:
            self._end()
            raise

    def stop(self) -> None:
        """Stop all brokers and release all resources."""
        try:
            self._do(self._cluster.stop())
        finally:
            self._end()

    def add_broker(self) -> int:
        """Add an empty broker. Returns its id when every broker knows it."""
        return self._do(self._cluster.add_broker())

    def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in order: its leaders move away first."""
        self._do(self._cluster.stop_broker(broker_id))

    def kill_broker(self, broker_id: int) -> None:
        """Stop a broker at once, as if its process had been killed."""
        self._do(self._cluster.kill_broker(broker_id))

    def start_broker(self, broker_id: int) -> None:
        """Start a stopped or killed broker at its old address and with its old files."""
        self._do(self._cluster.start_broker(broker_id))

    def __enter__(self) -> ThreadedCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
