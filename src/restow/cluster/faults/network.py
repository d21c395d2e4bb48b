"""Cut connections on real sockets: between brokers, or between brokers and clients.

    Cut            which messages are lost, and whether the sides notice
    NetworkCuts           all cuts of a cluster
    FaultNetwork   one broker's network, which applies them to its connections

Bytes on a cut connection wait and arrive when the cut ends, as TCP sends lost packets again. Clients can
still connect to a cut broker, because the kernel accepts connections, but get no answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.cluster.faults.names import broker_behind
from restow.cluster.handlers import HANDLERS, HangUp
from restow.cluster.net.server import ClientConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.cluster.broker.services import RequestContext
    from restow.cluster.faults.handle import ClusterFault
    from restow.cluster.faults.requests import HandlerTable, Proceed
    from restow.cluster.handlers import Answer
    from restow.runtime.network import FramedConnection, SystemListener, SystemNetwork
    from restow.runtime.protocols import Acceptor, FrameHandler
    from restow.runtime.tls import TlsFiles
    from restow.wire.codec import Request


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Cut:
    """Messages that are lost: between two sets of brokers, or between brokers and clients."""

    fault: ClusterFault
    brokers: frozenset[int]
    others: frozenset[int] | None
    """The brokers on the other side; None for clients."""
    client_id: str | None = None
    """The one client that is cut off; None for all."""
    sends: bool = True
    """Whether messages from `brokers` to the other side are lost."""
    receives: bool = True
    """Whether messages from the other side to `brokers` are lost."""
    resets: bool = False
    """Whether connections are reset; otherwise nobody notices anything."""

    def loses(self, broker: int, peer: int | None, client_id: str | None) -> tuple[bool, bool]:
        """Return whether a broker's messages from and to a peer are lost; peer None means a client."""
        if peer is None:
            is_cut = self.others is None and broker in self.brokers and self.client_id in (None, client_id)
            return is_cut and self.receives, is_cut and self.sends
        if self.others is None:
            return False, False
        here = broker in self.brokers and peer in self.others
        there = broker in self.others and peer in self.brokers
        return (here and self.receives) or (there and self.sends), (here and self.sends) or (
            there and self.receives
        )


class NetworkCuts:
    """All cuts of a cluster."""

    def __init__(self, broker_at: Callable[[str, int], int | None]) -> None:
        """`broker_at` returns the broker that listens there."""
        self.broker_at = broker_at
        self.active: list[Cut] = []
        self.networks: dict[int, FaultNetwork] = {}
        self._changed = asyncio.Event()

    def begin(self, cut: Cut) -> None:
        """Cut what is open now and what is opened later."""
        self.active.append(cut)
        for broker in cut.brokers | (cut.others or frozenset()):
            self.networks[broker].guard()
        self._apply()

    def end(self, cut: Cut) -> None:
        """Let everything travel again that no other cut stops."""
        self.active.remove(cut)
        self._apply()

    def between(self, broker: int, peer: int | None, client_id: str | None = None) -> list[Cut]:
        """Return the cuts between a broker and another one, or a client."""
        return [cut for cut in self.active if any(cut.loses(broker, peer, client_id))]

    async def until_changed(self) -> None:
        """Wait until a cut has begun or ended."""
        await self._changed.wait()

    def _apply(self) -> None:
        for network in self.networks.values():
            network.apply()
        self._changed.set()
        self._changed = asyncio.Event()


class FaultNetwork:
    """TCP as one broker sees it, with cuts."""

    def __init__(
        self, broker: int, network: SystemNetwork, cuts: NetworkCuts, handlers: HandlerTable
    ) -> None:
        self._broker, self._network, self._cuts, self._handlers = broker, network, cuts, handlers
        self._listeners: list[SystemListener] = []
        self._to_brokers: dict[FramedConnection, int] = {}
        self._held: set[FramedConnection] = set()
        self._is_guarded = False
        cuts.networks[broker] = self

    async def listen(
        self, host: str, port: int, acceptor: Acceptor, max_frame_bytes: int, *, tls: TlsFiles | None = None
    ) -> SystemListener:
        listener = await self._network.listen(host, port, acceptor, max_frame_bytes, tls=tls)
        self._listeners = [*(each for each in self._listeners if not each.is_closed), listener]
        return listener

    async def connect(
        self, host: str, port: int, handler: FrameHandler, timeout_s: float, *, tls: TlsFiles | None = None
    ) -> FramedConnection:
        other = self._cuts.broker_at(host, port)
        if other is not None:
            async with asyncio.timeout(timeout_s):
                await self._until_reachable(other)
        connection = await self._network.connect(host, port, handler, timeout_s, tls=tls)
        if other is not None:
            self._to_brokers[connection] = other
            connection.gone.add_done_callback(lambda _: self._to_brokers.pop(connection, None))
            if self._cuts.active:
                self.apply()
        return connection

    def guard(self) -> None:
        """Look at the requests of this broker while there are cuts: a first request says whose it is."""
        if not self._is_guarded:
            self._is_guarded = True
            self._handlers.add(HANDLERS, self._meet)

    def apply(self) -> None:
        """Hold, reset or let go every open connection."""
        for connection in [each for listener in self._listeners for each in listener.connections]:
            if isinstance(connection.handler, ClientConnection) and connection.handler.has_asked:
                client_id = connection.handler.client_id
                self._apply_to(connection, broker_behind(client_id), client_id)
        for connection, peer in tuple(self._to_brokers.items()):
            self._apply_to(connection, peer, None)
        if self._is_guarded and not self._cuts.active:
            self._is_guarded = False
            self._handlers.remove(self._meet)

    def _apply_to(self, connection: FramedConnection, peer: int | None, client_id: str | None) -> None:
        cuts = self._cuts.between(self._broker, peer, client_id)
        if resetting := next((cut for cut in cuts if cut.resets), None):
            resetting.fault.hit()
            connection.reset(ConnectionResetError("a fault resets it"))
            return
        lost = [cut.loses(self._broker, peer, client_id) for cut in cuts]
        incoming, outgoing = any(each[0] for each in lost), any(each[1] for each in lost)
        if cuts and connection not in self._held:
            self._held.add(connection)
            connection.gone.add_done_callback(lambda _: self._held.discard(connection))
            for cut in cuts:
                cut.fault.hit()
        elif not cuts:
            self._held.discard(connection)
        connection.hold(incoming=incoming, outgoing=outgoing)

    async def _meet(self, request: Request, context: RequestContext, proceed: Proceed) -> Answer:
        """Hold a request that should not have arrived: the first one of a new connection."""
        peer, client_id = broker_behind(request.client_id), request.client_id
        if self._cuts.between(self._broker, peer, client_id):
            self.apply()
        while cuts := self._cuts.between(self._broker, peer, client_id):
            if any(cut.resets for cut in cuts):
                raise HangUp("a fault resets it")
            if not any(cut.loses(self._broker, peer, client_id)[0] for cut in cuts):
                break
            await self._cuts.until_changed()
        return await proceed(request, context)

    async def _until_reachable(self, other: int) -> None:
        """Wait for the end of cuts in either direction, because a connection needs both."""
        met: set[Cut] = set()
        while cuts := self._cuts.between(self._broker, other):
            for cut in set(cuts) - met:
                cut.fault.hit()
            met |= set(cuts)
            if any(cut.resets for cut in cuts):
                raise ConnectionRefusedError(f"a fault refuses connections to broker {other}")
            await self._cuts.until_changed()
