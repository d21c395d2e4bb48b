"""A broker's way in for clients, and its way out to other brokers."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.broker.settings import server_limits
from restow.cluster.net.links import locate
from restow.cluster.net.peers import Peers
from restow.cluster.net.server import Door, serve
from restow.cluster.security.login import LoginParts
from restow.cluster.security.peer_login import PeerLogin
from restow.cluster.store.znodes import AdvertisedEndpoint

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.broker.broker import BrokerRuntime
    from restow.cluster.broker.services import Services
    from restow.cluster.handlers import Handler
    from restow.cluster.security.broker_doors import Doors
    from restow.cluster.security.listeners import ListenerSpec
    from restow.cluster.store import Store
    from restow.runtime.protocols import Listener


class Entrance:
    """The open listeners of a broker."""

    def __init__(self, doors: Doors, world: BrokerRuntime, store: Store, broker_id: int) -> None:
        self.doors = doors
        """The listeners, with their ports once they are open."""
        self._world = world
        self._store = store
        self._broker_id = broker_id
        self._open: list[Listener] = []

    @property
    def endpoints(self) -> tuple[AdvertisedEndpoint, ...]:
        """Return what the broker registers."""
        return tuple(
            AdvertisedEndpoint(each.name, *each.address, each.protocol) for each in self.doors.listeners
        )

    def peers(self, purpose: str) -> Peers:
        """Return connections to other brokers, which are opened on demand."""
        world, doors = self._world, self.doors
        return Peers(
            world.network,
            world.clock,
            partial(locate, self._store, doors.between_brokers.name),
            client_id=f"broker-{self._broker_id}-{purpose}",
            tls=doors.tls.get(doors.between_brokers.name),
            login=None if doors.peer_login is None else PeerLogin(doors.peer_login, world.chance),
        )

    async def open(self, services: Services) -> None:
        """Listen. Raises OSError if a port is not available."""
        for each in self.doors.listeners:
            listener = await self._listen(each, services)
            self._open.append(listener)
            self.doors = self.doors.bound(each.name, listener.port)

    async def close(self) -> None:
        """Close the listeners and their connections."""
        await asyncio.gather(*(each.close() for each in self._open))

    def _handlers(self, services: Services) -> Mapping[int, Handler]:
        """Return what answers requests; with an authorizer, rules stand before it."""
        if services.acls is None:
            return self._world.handlers
        from restow.cluster.security.guard import GuardedHandlers

        return GuardedHandlers(self._world.handlers, services.acls.rules)

    async def _listen(self, spec: ListenerSpec, services: Services) -> Listener:
        world, settings = self._world, self.doors.logins.get(spec.name)
        logins = None
        if settings is not None:
            logins = LoginParts(
                settings=settings, users=services.users, clock=world.clock, chance=world.chance
            )
        return await serve(
            world.network,
            spec.host,
            spec.port,
            services,
            server_limits(services.configs),
            self._handlers(services),
            door=Door(
                name=spec.name,
                logins=logins,
                tls=self.doors.tls.get(spec.name),
                rules=self.doors.principal_rules.get(spec.name),
            ),
        )
