"""One broker: all its parts, and its lifecycle from registration to shutdown.

    start    paths and cluster id ─► configs ─► logs ─► listener ─► registration ─► controller election
    stop     leaders moved away by the controller ─► everything ended in reverse ─► logs closed cleanly
    kill     everything dropped as it stands, as if the process had been killed

When the store session expires, the cluster has elected other leaders. The broker drops everything and starts
again on a new session.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.broker.life import Life
from restow.cluster.handlers import HANDLERS
from restow.cluster.security.broker_doors import Doors
from restow.cluster.store import StoreError
from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from restow.cluster.broker.services import Services
    from restow.cluster.handlers import Handler
    from restow.cluster.store import Store
    from restow.runtime.chance import Chance
    from restow.runtime.clock import Clock
    from restow.runtime.disk import Disk
    from restow.runtime.protocols import Network

log = logging.getLogger(__name__)

_TRY_AGAIN_S = 1.0


@frozen
class BrokerOptions:
    """A broker's start options, which do not change afterwards."""

    broker_id: int
    log_dirs: tuple[str, ...]
    host: str = "127.0.0.1"
    port: int = 0
    """0 picks a free port, which the broker keeps as long as the object lives."""
    rack: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    """Kafka's broker configs by name, as in server.properties."""
    registration_patience_s: float = 30.0
    """How long to wait until the registration of an earlier run disappears."""

    @property
    def start_configs(self) -> dict[str, str]:
        """All configs that the broker starts with, also those that other options stand for."""
        own = {"broker.id": str(self.broker_id), "log.dirs": ",".join(self.log_dirs)}
        if self.rack is not None:
            own["broker.rack"] = self.rack
        return {**self.properties, **own}


@frozen
class BrokerRuntime:
    """A broker's clock, network, disk and store; the simulator has its own."""

    clock: Clock
    chance: Chance
    network: Network
    disk: Disk
    open_session: Callable[[], Awaitable[Store]]
    """Open a new session with the store."""
    handlers: Mapping[int, Handler] = field(default_factory=lambda: HANDLERS)
    """By API key, what answers requests."""


class BrokerServer:
    """A broker that can be started, stopped and started again."""

    def __init__(self, options: BrokerOptions, world: BrokerRuntime) -> None:
        self.options = options
        self._world = world
        self._doors = Doors.of(options.properties, options.host, options.port)
        self._life: Life | None = None
        self._reviving: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._failure = ""
        self._failed = asyncio.Event()

    @property
    def is_running(self) -> bool:
        return self._life is not None

    @property
    def has_failed(self) -> bool:
        """Return whether the broker has ended without being stopped."""
        return self._failed.is_set()

    @property
    def address(self) -> str:
        """Address of the first listener as `host:port`; the same after a restart."""
        return self.address_of(self._doors.listeners[0].name)

    @property
    def peer_address(self) -> str:
        """Address at which other brokers reach this one."""
        return self.address_of(self._doors.between_brokers.name)

    def address_of(self, listener: str) -> str:
        """Return the advertised address of the listener with that name."""
        host, port = self._doors.listener(listener).address
        return f"{host}:{port}"

    @property
    def services(self) -> Services:
        """Return the parts of the running broker."""
        if self._life is None:
            raise RuntimeError(f"broker {self.options.broker_id} is not running")
        return self._life.services

    async def start(self) -> None:
        """Start the broker. Returns when it is registered and knows the controller."""
        if self._life is not None:
            raise RuntimeError(f"broker {self.options.broker_id} is running already")
        store = await self._world.open_session()
        life = Life(self.options, self._world, store, self._doors, self._ruined)
        store.on_expired(lambda: self._session_expired(life))
        try:
            await life.begin()
            life.require_session()
        except BaseException:
            await life.drop()
            raise
        self._life = life
        self._failed.clear()
        self._doors = life.entrance.doors
        log.info("broker %d listens on %s", self.options.broker_id, self.address)

    async def stop(self, *, hand_over: bool = True) -> None:
        """Stop in order: the controller moves leaders away if it can, then the logs are closed cleanly."""
        await self._end_what_is_under_way()
        life, self._life = self._life, None
        if life is not None:
            await life.end(hand_over=hand_over)

    async def kill(self) -> None:
        """Drop everything at once, without handing over leaders or closing logs."""
        await self._end_what_is_under_way()
        life, self._life = self._life, None
        if life is not None:
            await life.drop()

    async def until_failed(self) -> str:
        """Wait until the broker has ended without being stopped, and return the reason."""
        await self._failed.wait()
        return self._failure

    def _fail(self, reason: str) -> None:
        log.critical("broker %d ends: %s", self.options.broker_id, reason)
        self._failure = reason
        self._failed.set()

    def _ruined(self) -> None:
        """End the broker, because no log dir is left. Other brokers take over its partitions."""
        life, self._life = self._life, None
        if life is not None:
            self._ending = asyncio.get_running_loop().create_task(life.drop())
        self._fail("no log dir is left that can be used")

    def _session_expired(self, life: Life) -> None:
        life.is_over = True
        if self._life is life and self._reviving is None:
            log.error("broker %d lost its store session and starts again", self.options.broker_id)
            self._reviving = asyncio.get_running_loop().create_task(self._revive())

    async def _revive(self) -> None:
        life, self._life = self._life, None
        if life is not None:
            await life.drop()
        while True:
            try:
                await self.start()
                break
            except (StoreError, OSError) as error:
                log.warning("broker %d cannot start again yet: %s", self.options.broker_id, error)
                await self._world.clock.sleep(_TRY_AGAIN_S)
            except RestowError as error:
                self._fail(f"it cannot start again: {error}")
                break
        self._reviving = None

    async def _end_what_is_under_way(self) -> None:
        if self._ending is not None:
            await self._ending
            self._ending = None
        if self._reviving is not None:
            self._reviving.cancel()
            await asyncio.gather(self._reviving, return_exceptions=True)
            self._reviving = None
