"""A process on a simulated machine that can be killed at any moment, without cleaning up."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from restow.sim.disk import SimDisk
    from restow.sim.network import SimNetwork

T = TypeVar("T")


class SimProcess:
    """One process, from its start to its end. After `kill`, nothing that it does has an effect.

    Python runs the `finally` blocks of a cancelled task, which a killed process would not. So the process
    reaches its disk and its network only through `own`, which ends it there as soon as it is dead.
    """

    def __init__(self, host: str, network: SimNetwork, disk: SimDisk) -> None:
        self.host = host
        self._network, self._disk = network, disk
        self._tasks: list[asyncio.Task[Any]] = []
        self.is_alive = True

    def own(self, thing: T) -> T:
        """Return the same thing as long as this process lives."""
        return cast("T", _WhileAlive(self, thing))

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run it as a task of this process."""
        task = asyncio.create_task(work)
        self._tasks.append(task)
        return task

    def kill(self) -> None:
        """End the process; the kernel closes its connections and keeps what it has written."""
        self._network.end_process(self.host)
        self._disk.kill()
        self._die()

    def lose_power(self) -> None:
        """End the machine; peers are not told, and unsynced data may be lost."""
        self._network.lose_power(self.host)
        self._disk.lose_power()
        self._die()

    def check_alive(self) -> None:
        """End the caller if the process is dead."""
        if not self.is_alive:
            raise asyncio.CancelledError("the process was killed")

    def _die(self) -> None:
        self.is_alive = False
        for task in self._tasks:
            task.cancel()


class _WhileAlive:
    """Passes every call on, until the process is dead."""

    def __init__(self, process: SimProcess, inner: object) -> None:
        self._process, self._inner = process, inner

    def __getattr__(self, name: str) -> Any:
        self._process.check_alive()
        found = getattr(self._inner, name)
        if not callable(found):
            return found

        def call(*given: Any, **named: Any) -> Any:
            self._process.check_alive()
            result = found(*given, **named)
            return _WhileAlive(self._process, result) if name in _MAKERS and result is not None else result

        return call


_MAKERS = ("open", "lock")
"""The calls of a disk whose results have effects of their own."""
