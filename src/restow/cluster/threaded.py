"""The embedded cluster in a thread of its own, for callers without a loop.

with ThreadedCluster(brokers=3) as cluster:
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    cluster.stop_broker(1)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.faults.threaded import ThreadedFaults
from restow.runtime.loop import LoopThread

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from restow.runtime.certificates import Certificates

T = TypeVar("T")


class ThreadedCluster:
    """Takes EmbeddedCluster's arguments. Every call blocks until it is done."""

    def __init__(self, brokers: int = 1, **options: Any) -> None:
        self._cluster = EmbeddedCluster(brokers, **options)
        self._thread: LoopThread | None = None
        self.faults = ThreadedFaults(self._cluster.faults, self._do)
        """Faults for tests of clients."""

    @property
    def bootstrap(self) -> str:
        """The first listener of each broker, for `bootstrap.servers`."""
        return self._cluster.bootstrap

    def bootstrap_at(self, listener: str) -> str:
        """Return the addresses of the listener with that name, for `bootstrap.servers`."""
        return self._cluster.bootstrap_at(listener)

    @property
    def certificates(self) -> Certificates | None:
        """The certificates that brokers show, and one for clients, if they are in a folder."""
        return self._cluster.certificates

    def start(self) -> None:
        """Start all brokers. Returns when every broker knows every other."""
        self._thread = LoopThread("restow-cluster")
        try:
            self._do(self._cluster.start())
        except BaseException:
            self._thread.close()
            raise

    def stop(self) -> None:
        """Stop all brokers and release all resources."""
        try:
            self._do(self._cluster.stop())
        finally:
            if self._thread is not None:
                self._thread.close()

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

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        if self._thread is None:
            raise RuntimeError("the cluster has not been started")
        return self._thread.run(work)
