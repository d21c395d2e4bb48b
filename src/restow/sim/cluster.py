"""A cluster in virtual time: the production brokers on a simulated environment, with faults.

async with SimCluster(brokers=5) as cluster:
    await cluster.nodes[1].kill()
    cluster.nodes[2].halt()
    cluster.nodes[3].store.cut()
"""

from __future__ import annotations

import asyncio
from dataclasses import field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.broker.broker import BrokerOptions, BrokerRuntime, BrokerServer
from restow.cluster.broker.isr_requests import ALTER_PARTITION
from restow.cluster.handlers import HANDLERS
from restow.errors import RestowError
from restow.runtime.chance import SeededChance
from restow.sim.clock import NodeClock
from restow.sim.disk import SimDisk
from restow.sim.network import SimNetwork
from restow.sim.store import SimStore, StoreAccess
from restow.wire.codec import API_VERSIONS
from restow.wire.messages import ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.cluster.broker.services import RequestContext
    from restow.cluster.handlers import Answer, Handler
    from restow.wire.codec import Request

_PORT = 9092
_START_AGAIN_S = 1.0


@frozen
class SimulatedClusterSettings:
    """Settings of a simulated cluster."""

    seed: int | str = 0
    racks: tuple[str, ...] = ()
    log_dirs: int = 1
    log_dir_paths: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """The log dirs of brokers by id; brokers without an entry have `log_dirs` of their own."""
    most_skew_ms: int = 0
    """How far a broker's clock may be from the true time, in either direction."""
    properties: Mapping[str, str] = field(default_factory=dict)
    """Kafka's broker configs."""
    session_timeout_s: float = 18.0
    leaders_ask: bool = True
    """Whether controllers offer AlterPartition. Otherwise leaders write their ISRs themselves."""


def _without_alter_partition() -> dict[int, Handler]:
    """Return the handlers of a broker that does not offer AlterPartition, as Kafka before 2.7."""
    make = ApiVersionsResponse.ApiVersion
    others = {key: handler for key, handler in HANDLERS.items() if key != ALTER_PARTITION}
    offered = [
        make(api_key=key, min_version=handler.versions[0], max_version=handler.versions[-1])
        for key, handler in sorted(others.items())
    ]

    async def offer(_: Request, __: RequestContext) -> Answer:
        return ApiVersionsResponse(api_keys=offered)

    return {**others, API_VERSIONS: HANDLERS[API_VERSIONS]._replace(handle=offer)}


class SimNode:
    """One broker, its machine, and their faults."""

    def __init__(
        self, broker_id: int, network: SimNetwork, store: SimStore, settings: SimulatedClusterSettings
    ) -> None:
        self.id = broker_id
        self.host = f"broker-{broker_id}"
        self._network = network
        skew_ms = settings.most_skew_ms
        if skew_ms:
            skew_ms -= SeededChance(f"{settings.seed} skew {broker_id}").randrange(2 * skew_ms + 1)
        self.clock = NodeClock(skew_ms=skew_ms)
        self._halts = 0
        self.on_started: Callable[[SimNode], None] | None = None
        """Called when the broker has started, before it follows any leader."""
        self._disk_busy_until_s = 0.0
        self.disk = SimDisk(SeededChance(f"{settings.seed} disk {broker_id}"))
        self.store = StoreAccess(store, self.clock, settings.session_timeout_s)
        own = tuple(f"/data/{broker_id}/log-{each}" for each in range(settings.log_dirs))
        self.log_dirs = settings.log_dir_paths.get(broker_id, own)
        for path in self.log_dirs:
            self.disk.volume(path)
        self.disk.took = self._wait_for_disk
        racks = settings.racks
        self.broker = BrokerServer(
            BrokerOptions(
                broker_id=broker_id,
                log_dirs=self.log_dirs,
                host=self.host,
                port=_PORT,
                rack=racks[broker_id % len(racks)] if racks else None,
                properties={
                    "group.initial.rebalance.delay.ms": "0",
                    "group.consumer.assignment.interval.ms": "0",
                    **settings.properties,
                },
            ),
            BrokerRuntime(
                clock=self.clock,
                chance=SeededChance(f"{settings.seed} broker {broker_id}"),
                network=network.at(self.host, self.clock),
                disk=self.disk,
                open_session=self.store.open_session,
                handlers=HANDLERS if settings.leaders_ask else _without_alter_partition(),
            ),
        )

    async def start(self) -> None:
        await self.broker.start()
        if self.on_started is not None:
            self.on_started(self)

    async def stop(self) -> None:
        await self.broker.stop()

    async def start_until_up(self, note: Callable[[str], None]) -> None:
        """Start the broker as a service manager does: again and again, until it is up."""
        while not self.broker.is_running:
            try:
                await self.start()
            except (RestowError, OSError) as error:
                note(f"broker {self.id} cannot start: {error}")
                await asyncio.sleep(_START_AGAIN_S)

    async def kill(self) -> None:
        """Kill the process. Written data stays, and the store notices when the session expires."""
        self._network.end_process(self.host)
        self.disk.kill()
        self.store.abandon()
        await self.broker.kill()

    async def lose_power(self) -> None:
        """Cut the machine's power; unsynced data may be lost, and peers get no notice."""
        self._network.lose_power(self.host)
        self.disk.lose_power()
        self.store.abandon()
        await self.broker.kill()

    def halt(self) -> None:
        """Halt the process, until `go_on` was called as often."""
        self._halts += 1
        self.clock.halt()
        self.store.halt()

    def go_on(self) -> None:
        """Continue the process, with everything that arrived meanwhile."""
        self._halts -= 1
        if self._halts == 0:
            self.clock.go_on()
            self.store.go_on()
            self._network.deliver(self.host)

    def _wait_for_disk(self, seconds: float) -> None:
        """Halt, because a disk call of the process takes so long."""
        now_s = asyncio.get_running_loop().time()
        if self._disk_busy_until_s <= now_s:
            self._disk_busy_until_s = now_s
            self.halt()
            asyncio.get_running_loop().call_later(seconds, self._disk_answered)
        self._disk_busy_until_s += seconds

    def _disk_answered(self) -> None:
        loop = asyncio.get_running_loop()
        if loop.time() < self._disk_busy_until_s:
            loop.call_at(self._disk_busy_until_s, self._disk_answered)
        else:
            self.go_on()


class SimCluster:
    """Brokers with these ids, or so many with ids from 0; a network between them, and a store."""

    def __init__(
        self, brokers: int | Iterable[int] = 3, settings: SimulatedClusterSettings | None = None
    ) -> None:
        settings = settings or SimulatedClusterSettings()
        self.network = SimNetwork(SeededChance(f"{settings.seed} network"))
        self.store = SimStore(clock=NodeClock())
        ids = range(brokers) if isinstance(brokers, int) else brokers
        self.nodes = {each: SimNode(each, self.network, self.store, settings) for each in ids}

    async def __aenter__(self) -> SimCluster:
        await asyncio.gather(*(node.start() for node in self.nodes.values()))
        return self

    async def __aexit__(self, *_: object) -> None:
        self.network.mend()
        for node in self.nodes.values():
            node.store.mend()
            await node.broker.stop(hand_over=False)
        await self.store.close()
