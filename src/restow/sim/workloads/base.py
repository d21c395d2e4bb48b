"""The interface between a run and the work that is done on its cluster.

A run calls a workload in this order:

    start()         before the first fault
    run(until_s)    beside the faults, up to this virtual time
    settle()        after the last fault is over: finish what is under way
    finish()        at the end: yield every promise that was broken

and `check()` every few hundred virtual milliseconds from start to end.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from restow._frozen import frozen
from restow.runtime.chance import SeededChance
from restow.sim.client import SimClient
from restow.sim.clock import NodeClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from restow.runtime.chance import Chance
    from restow.sim.cluster import SimCluster
    from restow.sim.committed import CommittedRecords
    from restow.sim.scenario import Scenario


@frozen
class WorkContext:
    """What a workload may use."""

    scenario: Scenario
    cluster: SimCluster
    committed: CommittedRecords
    """The records that the checkers have seen below a high watermark."""
    note: Callable[[str], None]
    """Adds an event, in words, to the trace."""

    def chance(self, name: str) -> Chance:
        """Return a stream of random numbers that depends on the seed and this name alone."""
        return SeededChance(f"{self.scenario.seed} {name}")

    def client(self, name: str) -> SimClient:
        """Return a client on a host of its own; whoever asks for it closes it."""
        return SimClient(name, self.cluster.network, NodeClock())

    def now_s(self) -> float:
        """Return the virtual seconds since the run began."""
        return asyncio.get_running_loop().time()


class Workload(ABC):
    """Work on the cluster of one run, and the promises that must be kept meanwhile.

    A workload lives with faults: every request may fail, time out, or be carried out without a response.
    """

    name: ClassVar[str]
    is_always_drawn: ClassVar[bool] = False
    """Whether every seed has it. Otherwise two seeds out of three do."""
    is_drawn: ClassVar[bool] = True
    """Whether seeds draw it at all. Otherwise a run has it only if it is named."""
    excludes: ClassVar[tuple[str, ...]] = ()
    """Workloads whose promises this one would break; a seed that has one of them does not have this one."""

    def __init__(self, context: WorkContext) -> None:
        self.context = context
        self.acked = 0
        """Records that the cluster has acknowledged."""
        self.lost = 0
        """Acknowledged records that were not found at the end."""

    @abstractmethod
    async def start(self) -> None:
        """Prepare, on a healthy cluster."""

    @abstractmethod
    async def run(self, until_s: float) -> None:
        """Work until this virtual time. What is under way then may stay so."""

    @abstractmethod
    async def settle(self) -> None:
        """Bring everything that is under way to its end; a run bounds how long that may take."""

    def check(self) -> Iterable[str]:
        """Yield the promises that are broken at this moment. This must be cheap."""
        return ()

    @abstractmethod
    def finish(self) -> AsyncIterator[str]:
        """Yield the promises that are broken at the end, and close the clients."""
