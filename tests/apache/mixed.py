"""One cluster of both kinds: two Apache Kafka 3.9 brokers and one of ours, on one ZooKeeper.

Brokers 0 and 1 are Apache's, 2 is ours, as in `two_sides.py`; in ZooKeeper their ids are one higher.
`apache_cluster` runs three of Apache's, to compare with.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from enum import Enum
from typing import TYPE_CHECKING

from harness.apache import apache_kafka
from harness.brokers import BrokerProcess
from harness.process import free_ports
from harness.zookeeper import zookeeper
from restow.cluster.store import NoNode
from restow.cluster.store.znodes import ControllerZNode
from restow.cluster.store.zookeeper import ZooKeeperStore
from tests.apache.two_sides import BROKERS, PATIENCE_S
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from harness.apache import Cluster
    from restow.cluster.store import Store

APACHE = (0, 1)
OURS = 2
SHIFT = 1


class Kind(Enum):
    """Whose broker is controller at first."""

    APACHE = "Apache's broker"
    OURS = "our broker"


class MixedSide:
    """The brokers of both kinds, and the tree they share."""

    shift = SHIFT

    def __init__(self, theirs: Cluster, ours: BrokerProcess | None, store: Store) -> None:
        """Without one of ours, all three are Apache's."""
        self.name = "mixed" if ours else "Apache's"
        self._theirs = theirs
        self._ours = ours
        self.store = store

    def _mine(self, broker: int) -> BrokerProcess | None:
        """Return the broker if it is ours."""
        return self._ours if broker == OURS else None

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, separated by commas."""
        return self._theirs.bootstrap + (f",{self._ours.address}" if self._ours else "")

    def port(self, broker: int) -> int:
        """Return the port of a broker, by its id in ZooKeeper."""
        if (mine := self._mine(broker - SHIFT)) is not None:
            return int(mine.address.rpartition(":")[2])
        return self._theirs.brokers[broker].port

    async def stop(self, broker: int) -> None:
        """Stop a broker in order."""
        if (mine := self._mine(broker)) is not None:
            assert await asyncio.to_thread(mine.stop) == 0
        else:
            await asyncio.to_thread(self._theirs.brokers[broker + SHIFT].stop)

    async def kill(self, broker: int) -> None:
        """Kill a broker with SIGKILL."""
        mine = self._mine(broker)
        await asyncio.to_thread(mine.kill if mine else self._theirs.brokers[broker + SHIFT].kill)

    async def start(self, broker: int, *, known: int = BROKERS) -> None:
        """Start a broker again, and wait until it knows that many; when all run, all Apache brokers."""
        if (mine := self._mine(broker)) is not None:
            await asyncio.to_thread(mine.start)
        else:
            self._theirs.brokers[broker + SHIFT].launch()
            await asyncio.to_thread(self._theirs.brokers[broker + SHIFT].until_ready, known)
        if known == BROKERS:
            for each in self._theirs.brokers.values():
                await asyncio.to_thread(each.until_ready, BROKERS)

    async def controller(self) -> int:
        """Return the controller, once there is one."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                try:
                    node = await self.store.get(ControllerZNode.PATH)
                except NoNode:
                    await asyncio.sleep(0.05)
                else:
                    return ControllerZNode.decode(node.data).broker_id - SHIFT

    async def until_replaced(self, controller: int) -> None:
        """Wait until another broker is controller."""
        async with asyncio.timeout(PATIENCE_S):
            while await self.controller() == controller:
                await asyncio.sleep(0.05)

    async def make_controller(self, broker: int) -> None:
        """Stop the other brokers until that one is controller, and start them again."""
        others = [each for each in range(BROKERS) if each != broker]
        if await self.controller() == broker:
            return
        for each in others:
            await self.stop(each)
        async with asyncio.timeout(PATIENCE_S):
            while await self.controller() != broker:
                await asyncio.sleep(0.05)
        for number, each in enumerate(others, start=2):
            await self.start(each, known=number)


def _ours(folder: Path, address: str, settings: dict[str, str], port: int, log_dirs: int) -> BrokerProcess:
    options = [word for pair in settings.items() for word in ("--config", "=".join(pair))]
    options += ["--log-dirs", str(log_dirs)]
    return BrokerProcess(OURS + SHIFT, f"zookeeper://{address}", folder, port, tuple(options))


@asynccontextmanager
async def mixed_cluster(
    folder: Path, first: Kind, settings: dict[str, str], *, log_dirs: int = 1
) -> AsyncIterator[MixedSide]:
    """Run the three brokers. The first kind starts first, and so is controller."""
    with ExitStack() as stack:
        with needs_kafka():
            server = stack.enter_context(zookeeper(folder / "zookeeper", fsync=False))
            (port,) = stack.enter_context(free_ports(1))
            ours = _ours(folder, server.address, settings, port, log_dirs)
            stack.callback(ours.end)
            if first is Kind.OURS:
                ours.start()
            theirs = stack.enter_context(
                apache_kafka(
                    folder / "apache",
                    nodes=len(APACHE),
                    zookeeper=server.address,
                    settings=settings,
                    beside=1 if first is Kind.OURS else 0,
                    log_dirs=log_dirs,
                )
            )
        if first is Kind.APACHE:
            ours.start()
            for each in theirs.brokers.values():
                await asyncio.to_thread(each.until_ready, BROKERS)
        async with AsyncExitStack() as until_the_end:
            store = await ZooKeeperStore.connect(server.address)
            until_the_end.push_async_callback(store.close)
            side = MixedSide(theirs, ours, store)
            assert (await side.controller() == OURS) is (first is Kind.OURS)
            yield side


@asynccontextmanager
async def apache_cluster(folder: Path, settings: dict[str, str]) -> AsyncIterator[MixedSide]:
    """Run three brokers of Apache's."""
    with ExitStack() as stack:
        with needs_kafka():
            server = stack.enter_context(zookeeper(folder / "zookeeper", fsync=False))
            theirs = stack.enter_context(
                apache_kafka(folder / "apache", nodes=BROKERS, zookeeper=server.address, settings=settings)
            )
        store = await ZooKeeperStore.connect(server.address)
        try:
            yield MixedSide(theirs, None, store)
        finally:
            await store.close()
