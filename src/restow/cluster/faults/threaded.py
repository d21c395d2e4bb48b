"""Faults for callers without a loop: `cluster.faults` of a `ThreadedCluster`. Every call blocks."""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from restow.cluster.faults.faults import ClusterFaults

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from restow.cluster.faults.handle import ClusterFault

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE_S = 30.0


class ThreadedFault:
    """One fault on a cluster in another thread. It ends with its `with` block, as `ClusterFault` does."""

    def __init__(self, fault: ClusterFault, do: Callable[[Coroutine[Any, Any, None]], None]) -> None:
        self._fault = fault
        self._do = do

    @property
    def hits(self) -> int:
        """How often it was met: requests, connections or disk calls."""
        return self._fault.hits

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._fault.is_over

    def wait(self, hits: int = 1, timeout_s: float = _PATIENCE_S) -> None:
        """Wait until the fault was met that often. Raises TimeoutError."""
        self._do(self._fault.until(hits, timeout_s))

    def end(self) -> None:
        """End the fault, and wait until everything is repaired. A second call does nothing."""
        if not self._fault.is_repaired:
            self._do(self._fault.__aexit__(None, None, None))

    def __repr__(self) -> str:
        return repr(self._fault)

    def __enter__(self) -> ThreadedFault:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


def _blocking(
    method: Callable[Concatenate[ClusterFaults, P], ClusterFault],
) -> Callable[Concatenate[ThreadedFaults, P], ThreadedFault]:
    @wraps(method)
    def begin(self: ThreadedFaults, /, *given: P.args, **named: P.kwargs) -> ThreadedFault:
        return self.begin(partial(method, self.on_loop, *given, **named))

    return begin


class ThreadedFaults:
    """The methods of `ClusterFaults`, from any thread."""

    def __init__(self, faults: ClusterFaults, do: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        """`do` runs a coroutine on the cluster's loop and waits for it."""
        self.on_loop = faults
        self._do = do

    error = _blocking(ClusterFaults.error)
    delay = _blocking(ClusterFaults.delay)
    disconnect = _blocking(ClusterFaults.disconnect)
    drop = _blocking(ClusterFaults.drop)
    cut_brokers = _blocking(ClusterFaults.cut_brokers)
    cut_clients = _blocking(ClusterFaults.cut_clients)
    fail_log_dir = _blocking(ClusterFaults.fail_log_dir)
    fill_log_dir = _blocking(ClusterFaults.fill_log_dir)
    slow_log_dir = _blocking(ClusterFaults.slow_log_dir)
    expire_session = _blocking(ClusterFaults.expire_session)

    def end(self) -> None:
        """End all faults, and wait until everything is repaired."""
        if self.on_loop.active:
            self._do(self.on_loop.end())

    def begin(self, start: Callable[[], ClusterFault]) -> ThreadedFault:
        """Start a fault on the cluster's loop."""

        async def on_loop() -> ClusterFault:
            return start()

        return ThreadedFault(self._do(on_loop()), self._do)
