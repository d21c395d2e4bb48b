"""A cluster of brokers inside this process, on the running loop.

    async with EmbeddedCluster(brokers=3, racks=("a", "b", "c")) as cluster:
        producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
        await cluster.stop_broker(1)
        await cluster.start_broker(1)

Brokers share a store in this process and talk over loopback. Without `data`, all files are in a temporary
folder that is removed with the cluster; with it, a later cluster on the same folder continues.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restow.cluster.broker.broker import BrokerOptions, BrokerRuntime, BrokerServer
from restow.cluster.faults.faults import ClusterFaults
from restow.cluster.security.access import Access
from restow.cluster.security.broker_doors import Doors
from restow.cluster.store.embedded import EmbeddedStore
from restow.errors import InvalidBrokers
from restow.runtime.chance import SystemChance
from restow.runtime.clock import SystemClock
from restow.runtime.network import SystemNetwork
from restow.runtime.ports import HeldPort

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable, Mapping, Sequence

    from restow.cluster.broker.metadata import MetadataCache
    from restow.cluster.security.settings import PeerCredentials
    from restow.cluster.store.session import EmbeddedSession
    from restow.runtime.certificates import Certificates
    from restow.runtime.tls import TlsFiles

_OFFSETS_REPLICATION_FACTOR = 3
_TRANSACTIONS_MIN_ISR = 2
_PASSWORD_BYTES = 24


class EmbeddedCluster:
    """A cluster of `brokers` with ids from 0. Racks are dealt in turn; each has `log_dirs` log dirs."""

    def __init__(
        self,
        brokers: int = 1,
        *,
        racks: Sequence[str] = (),
        log_dirs: int = 1,
        data: Path | str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        properties: Mapping[str, str] | None = None,
        fsync: bool = True,
        listeners: Sequence[str] = (),
        users: Mapping[str, str] | None = None,
        super_users: Sequence[str] = (),
        tls: Path | str | None = None,
    ) -> None:
        """Broker i listens on `port` + i, or for port 0 on a free one that it keeps until `stop`.
        `properties` are Kafka's broker configs. With several `listeners`, each as `NAME:PROTOCOL`, each
        broker has as many ports in a row; the first listener is the brokers' own, too. `users` have
        passwords, with which clients log in at listeners of the protocols SASL_PLAINTEXT and SASL_SSL. With
        `super_users`, all others need ACLs. `tls` is a folder with certificates for listeners of the
        protocols SSL and SASL_SSL, which `start` makes if it has none.

        Nothing is touched before `start`. Without `fsync`, acknowledged store writes survive a kill of the
        process but not necessarily a power loss.
        """
        if brokers < 1:
            raise InvalidBrokers(f"A cluster has at least one broker, not {brokers}.")
        if log_dirs < 1:
            raise InvalidBrokers(f"A broker has at least one log dir, not {log_dirs}.")
        self._count = brokers
        self._racks = tuple(racks)
        self._log_dirs = log_dirs
        self._data = None if data is None else Path(data)
        self._host = host
        self._port = port
        self._held: list[HeldPort] = []
        self._access = Access.of_cluster(
            listeners, users or {}, SystemChance().randbytes(_PASSWORD_BYTES).hex(), super_users, tls
        )
        self._properties = {
            "offsets.topic.replication.factor": str(min(_OFFSETS_REPLICATION_FACTOR, brokers)),
            "transaction.state.log.replication.factor": str(min(_OFFSETS_REPLICATION_FACTOR, brokers)),
            "transaction.state.log.min.isr": str(min(_TRANSACTIONS_MIN_ISR, brokers)),
            "group.initial.rebalance.delay.ms": "0",
            "group.consumer.assignment.interval.ms": "0",
            **(properties or {}),
        }
        ports = [0] * len(self._access.listeners)
        self._doors = Doors.of({**self._access.properties(host, ports), **self._properties}, host, port)
        self._fsync = fsync
        self._temporary: Path | None = None
        self._store: EmbeddedStore | None = None
        self._network = SystemNetwork()
        self._world: BrokerRuntime | None = None
        self.brokers: dict[int, BrokerServer] = {}
        self.faults = ClusterFaults(self)
        """Faults for tests of clients."""

    @property
    def bootstrap(self) -> str:
        """The first listener of each broker, for `bootstrap.servers`."""
        return ",".join(broker.address for _, broker in sorted(self.brokers.items()))

    @property
    def own_bootstrap(self) -> str:
        """Return the addresses at which brokers reach each other."""
        return self.bootstrap_at(self._doors.between_brokers.name)

    @property
    def certificates(self) -> Certificates | None:
        """The certificates that brokers show, and one for clients, if they are in a folder."""
        return self._access.certificates

    @property
    def own_tls(self) -> TlsFiles | None:
        """The certificate that brokers show each other, and whom they trust, if they use TLS."""
        return self._doors.tls.get(self._doors.between_brokers.name)

    @property
    def own_login(self) -> PeerCredentials | None:
        """How brokers log in to each other, if they do."""
        return self._doors.peer_login

    @property
    def listeners(self) -> Mapping[str, str]:
        """For `bootstrap.servers`, the addresses of each listener by name."""
        return {each.name: self.bootstrap_at(each.name) for each in self._doors.listeners}

    def bootstrap_at(self, listener: str) -> str:
        """Return the addresses of the listener with that name, for `bootstrap.servers`."""
        brokers = sorted(self.brokers.items())
        return ",".join(broker.address_of(listener.upper()) for _, broker in brokers)

    async def start(self) -> None:
        """Start all brokers. Returns when every broker knows every other."""
        if self.certificates is not None:
            self.certificates.make_if_none(self._host)
        folder = self._folder()
        clock = SystemClock()
        self._store = store = EmbeddedStore(folder / "store.sqlite", fsync=self._fsync, clock=clock)
        self._world = BrokerRuntime(
            clock=clock,
            chance=SystemChance(),
            network=self._network,
            disk=self.faults.disk,
            open_session=partial(_session_of, store),
        )
        self.brokers = {}
        try:
            for number in range(self._count):
                self.brokers[number] = self._new_broker(number, folder)
            await _all(broker.start() for broker in self.brokers.values())
            await self.settled()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """End all faults, stop all brokers, release all resources, and remove a temporary folder."""
        try:
            await self.faults.end()
        finally:
            await self._stop()

    async def _stop(self) -> None:
        await _all(broker.stop(hand_over=False) for broker in self.brokers.values())
        if self._store is not None:
            await self._store.close()
            self._store = None
        while self._held:
            self._held.pop().let_go()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    async def __aenter__(self) -> EmbeddedCluster:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def add_broker(self) -> int:
        """Add an empty broker. Returns its id when every broker knows it."""
        if not self.brokers:
            raise RuntimeError("the cluster has not been started")
        number = max(self.brokers) + 1
        broker = self._new_broker(number, self._data or self._temporary or Path())
        await broker.start()
        self.brokers[number] = broker
        await self.settled()
        return number

    async def stop_broker(self, broker_id: int) -> None:
        """Stop a broker in order: its leaders move away first."""
        await self._broker(broker_id).stop()

    async def kill_broker(self, broker_id: int) -> None:
        """Stop a broker at once, as if its process had been killed."""
        await self._broker(broker_id).kill()

    async def start_broker(self, broker_id: int) -> None:
        """Start a stopped or killed broker at its old address and with its old files."""
        await self._broker(broker_id).start()

    async def settled(self, timeout_s: float = 30.0) -> None:
        """Wait until every running broker knows every other; TimeoutError if that takes too long."""
        running = {number for number, broker in self.brokers.items() if broker.is_running}
        for number in running:
            metadata = self.brokers[number].services.metadata
            if not await metadata.until(partial(_knows, metadata, running), timeout_s):
                raise TimeoutError(f"broker {number} does not know all of {sorted(running)} yet")

    def _new_broker(self, number: int, folder: Path) -> BrokerServer:
        if self._world is None:
            raise RuntimeError("the cluster has not been started")
        network, table = self.faults.world_of(number, self._network)
        return BrokerServer(
            self._options(number, folder), replace(self._world, network=network, handlers=table.handlers)
        )

    def _broker(self, broker_id: int) -> BrokerServer:
        try:
            return self.brokers[broker_id]
        except KeyError:
            raise InvalidBrokers(
                f"There is no broker {broker_id}; there are {', '.join(map(str, sorted(self.brokers)))}."
            ) from None

    def _folder(self) -> Path:
        if self._data is not None:
            self._data.mkdir(parents=True, exist_ok=True)
            return self._data
        self._temporary = Path(tempfile.mkdtemp(prefix="restow-"))
        return self._temporary

    def _options(self, number: int, folder: Path) -> BrokerOptions:
        home = folder / f"broker-{number}"
        count = len(self._access.listeners) or 1
        first = self._port + number * count
        ports = [first + each if self._port else self._free_port() for each in range(count)]
        return BrokerOptions(
            broker_id=number,
            log_dirs=tuple(str(home / f"log-{each}") for each in range(self._log_dirs)),
            host=self._host,
            port=ports[0],
            rack=self._racks[number % len(self._racks)] if self._racks else None,
            properties={**self._access.properties(self._host, ports), **self._properties},
        )

    def _free_port(self) -> int:
        """Return a free port and keep it reserved while its broker is down."""
        port = HeldPort(self._host)
        self._held.append(port)
        return port.number


async def _session_of(store: EmbeddedStore) -> EmbeddedSession:
    return store.session()


async def _all(work: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Wait for all of them, then raise the first failure."""
    for outcome in await asyncio.gather(*work, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def _knows(metadata: MetadataCache, brokers: set[int]) -> bool:
    return brokers <= metadata.brokers.keys()
