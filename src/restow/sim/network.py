"""A network in memory: latency and bandwidth per link, and network faults.

    network.at("broker-1")                  that node's network
    network.cut("broker-1", "broker-2")     hold back everything from the first to the second
    network.mend()                          undo all cuts
    network.end_process("broker-1")         reset its connections, as a kernel does for a dead process
    network.lose_power("broker-1")          leave its connections half open

Data sent into a cut link waits there, as TCP retransmits, and arrives when the link is mended.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.runtime.frames import BadFrame

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.chance import Chance
    from restow.runtime.frames import Buffer
    from restow.runtime.protocols import Acceptor, FrameHandler
    from restow.runtime.tls import TlsFiles
    from restow.sim.clock import NodeClock

_FIRST_PORT = 20_000
_WINDOW_BYTES = 1024 * 1024
"""Bytes that a receiver's kernel buffers before its process reads."""


@dataclass(slots=True, kw_only=True)
class Wire:
    """One direction between two nodes."""

    latency_s: float = 0.0005
    jitter_s: float = 0.0005
    bytes_per_s: float = 125e6
    is_cut: bool = False
    free_at_s: float = 0.0
    """When the last byte put on it has left."""


class SimNetwork:
    """All links and listeners."""

    def __init__(self, chance: Chance, *, wire: Callable[[], Wire] = Wire) -> None:
        self.chance = chance
        self._new_wire = wire
        self._wires: dict[tuple[str, str], Wire] = {}
        self.listeners: dict[tuple[str, int], _Listener] = {}
        self._ends: dict[str, dict[SimConnection, None]] = {}
        self._next_port = _FIRST_PORT
        self.clocks: dict[str, NodeClock] = {}
        self.trace: Callable[[float, str, str, bytes], None] | None = None
        """Called for every delivered frame: time, source, target, payload."""
        self.asked: Callable[[SimConnection, bytes], None] | None = None
        """Called for every request that is delivered, with the end that gets it."""
        self.answered: Callable[[SimConnection, bytes], None] | None = None
        """Called for every response that is delivered, with the end that has sent it."""

    def at(self, node: str, clock: NodeClock) -> NodeNetwork:
        """Return the network as this node sees it; `clock` tells whether the node is halted."""
        self.clocks[node] = clock
        return NodeNetwork(self, node)

    def wire(self, source: str, target: str) -> Wire:
        """Return one direction of a link, to change its settings."""
        found = self._wires.get((source, target))
        if found is None:
            found = self._wires[source, target] = self._new_wire()
        return found

    def cut(self, source: str, target: str) -> None:
        """Let nothing through in this direction."""
        self.wire(source, target).is_cut = True

    def mend(self) -> None:
        """Let everything through again, including waiting data."""
        for wire in self._wires.values():
            wire.is_cut = False
        for ends in self._ends.values():
            for end in tuple(ends):
                end.deliver_soon()

    def end_process(self, node: str) -> None:
        """Reset all connections of a process that is gone, and free its ports."""
        self._forget(node, tell=True)

    def lose_power(self, node: str) -> None:
        """Drop all connections of a machine without notice."""
        self._forget(node, tell=False)

    def reset(self, node: str) -> None:
        """Reset every connection of this node, which lives on."""
        for end in tuple(self._ends.get(node, ())):
            end.abort(ConnectionResetError("the connection was reset"))

    def half_open(self, node: str) -> None:
        """Let this node forget its connections. The peers notice when they send."""
        for end in tuple(self._ends.get(node, ())):
            end.forget()

    def silence(self, node: str) -> None:
        """Let nothing through the present connections of this node, and tell nobody."""
        for end in tuple(self._ends.get(node, ())):
            if (other := end.other) is not None:
                end.other = other.other = None

    def hold(self, node: str) -> tuple[SimConnection, ...]:
        """Keep back what the present connections of this node carry, in both directions."""
        ends = tuple(self._ends.get(node, ()))
        held = (*ends, *(end.other for end in ends if end.other is not None))
        for end in held:
            end.is_held = True
        return held

    def release(self, held: tuple[SimConnection, ...]) -> None:
        """Deliver what was kept back."""
        for end in held:
            end.is_held = False
            end.deliver_soon()

    def deliver(self, node: str) -> None:
        """Deliver to a continued node everything that has arrived meanwhile."""
        for end in tuple(self._ends.get(node, ())):
            end.deliver_soon()

    def is_halted(self, node: str) -> bool:
        clock = self.clocks.get(node)
        return clock is not None and clock.is_halted

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def add(self, end: SimConnection) -> None:
        self._ends.setdefault(end.node, {})[end] = None

    def remove(self, end: SimConnection) -> None:
        self._ends.get(end.node, {}).pop(end, None)

    def _forget(self, node: str, *, tell: bool) -> None:
        for address in [address for address, each in self.listeners.items() if each.node == node]:
            del self.listeners[address]
        for end in tuple(self._ends.get(node, ())):
            end.vanish(tell=tell)


class NodeNetwork:
    """`restow.runtime.network.Network` as one node sees it."""

    def __init__(self, network: SimNetwork, node: str) -> None:
        self._network, self._node = network, node

    async def listen(
        self, host: str, port: int, acceptor: Acceptor, max_frame_bytes: int, *, tls: TlsFiles | None = None
    ) -> _Listener:
        if tls is not None:
            raise OSError("there is no TLS in the simulation")
        port = port or self._network.free_port()
        if (host, port) in self._network.listeners:
            raise OSError(f"{host}:{port} is in use")
        listener = _Listener(self._network, self._node, host, port, acceptor, max_frame_bytes)
        self._network.listeners[host, port] = listener
        return listener

    async def connect(
        self, host: str, port: int, handler: FrameHandler, timeout_s: float, *, tls: TlsFiles | None = None
    ) -> SimConnection:
        if tls is not None:
            raise OSError("there is no TLS in the simulation")
        network, node = self._network, self._node
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + timeout_s
        there = network.listeners.get((host, port))
        while True:
            target = there.node if there is not None else host
            out, back = network.wire(node, target), network.wire(target, node)
            await asyncio.sleep(out.latency_s + back.latency_s)
            there = network.listeners.get((host, port))
            reachable = not (out.is_cut or back.is_cut or network.is_halted(target))
            if reachable and there is None:
                raise ConnectionRefusedError(f"nothing listens on {host}:{port}")
            if reachable and there is not None:
                return there.accept(node, handler)
            if loop.time() >= deadline_s:
                raise TimeoutError(f"{host}:{port} does not answer")
            await asyncio.sleep(min(1.0, deadline_s - loop.time()))


class _Listener:
    """A listening port of a node."""

    def __init__(
        self,
        network: SimNetwork,
        node: str,
        host: str,
        port: int,
        acceptor: Acceptor,
        max_frame_bytes: int,
    ) -> None:
        self._network, self.node = network, node
        self.host, self.port = host, port
        self._acceptor, self._max_frame_bytes = acceptor, max_frame_bytes
        self._accepted: dict[SimConnection, None] = {}

    def accept(self, node: str, handler: FrameHandler) -> SimConnection:
        """Make both ends of a connection from that node and return the node's end."""
        theirs = SimConnection(self._network, node, handler, f"{self.host}:{self.port}", 1 << 30)
        port = self._network.free_port()
        ours = SimConnection(
            self._network, self.node, self._acceptor(), f"{node}:{port}", self._max_frame_bytes
        )
        theirs.other, ours.other = ours, theirs
        ours.is_accepted = True
        self._accepted[ours] = None
        ours.when_gone = lambda: self._accepted.pop(ours, None)
        ours.open()
        theirs.open()
        return theirs

    async def close(self) -> None:
        if self._network.listeners.get((self.host, self.port)) is self:
            del self._network.listeners[self.host, self.port]
        for connection in tuple(self._accepted):
            connection.close()


class SimConnection:
    """One end of a connection."""

    def __init__(
        self, network: SimNetwork, node: str, handler: FrameHandler, peer: str, max_frame_bytes: int
    ) -> None:
        self._network, self.node, self._handler, self.peer = network, node, handler, peer
        self._max_frame_bytes = max_frame_bytes
        self._loop = asyncio.get_running_loop()
        self.other: SimConnection | None = None
        self.is_accepted = self.is_held = False
        self.certificate: bytes | None = None
        self.when_gone: Callable[[], object] = lambda: None
        self.inbox: list[tuple[float, bytes | _Bye]] = []
        self.inbox_bytes = 0
        self._reading = True
        self.is_gone = self._hung_up = False
        self._timer: asyncio.TimerHandle | None = None
        self._drained: list[asyncio.Future[None]] = []

    def open(self) -> None:
        self._network.add(self)
        self._handler.opened(self)

    # Called by the handler's side

    @property
    def unsent_bytes(self) -> int:
        other = self.other
        unsent = 0 if other is None else other.inbox_bytes - _WINDOW_BYTES
        return max(0, unsent)

    def send(self, *parts: Buffer) -> None:
        if not self._hung_up and not self.is_gone:
            self._put(b"".join(parts))

    async def drain(self) -> None:
        while self.unsent_bytes and not self.is_gone:
            waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._drained.append(waiting)
            await waiting

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._reading:
            self._reading = True
            self.deliver_soon()

    def close(self) -> None:
        if not self._hung_up and not self.is_gone:
            self._put(_Bye(None))
            self._end(None)

    def abort(self, reason: Exception | None) -> None:
        if not self.is_gone:
            self._put(_Bye(ConnectionResetError("the connection was reset")))
            self._end(reason)

    # Called by the network

    def vanish(self, *, tell: bool) -> None:
        """Drop the connection together with its process, which gets no callback."""
        if self.is_gone:
            return
        if tell:
            self._put(_Bye(ConnectionResetError("the peer's process is gone")))
        self.is_gone = self._hung_up = True
        self._let_go()

    def forget(self) -> None:
        """End this side alone; the other side is not told."""
        self._end(ConnectionResetError("the connection was reset"))

    def deliver_soon(self) -> None:
        """Deliver received data at the next turn."""
        if self.inbox and self._timer is None and not self.is_gone:
            self._timer = self._loop.call_at(max(self.inbox[0][0], self._loop.time()), self._deliver)

    def _put(self, what: bytes | _Bye) -> None:
        """Put it on the wire behind everything sent before."""
        other = self.other
        if other is None or other.is_gone:
            if other is not None and not isinstance(what, _Bye):
                self._answer_reset()
            return
        wire = self._network.wire(self.node, other.node)
        now_s, free_at_s, inbox = self._loop.time(), wire.free_at_s, other.inbox
        size = 0 if isinstance(what, _Bye) else len(what)
        if free_at_s < now_s:
            free_at_s = now_s
        wire.free_at_s = free_at_s = free_at_s + (size + 60) / wire.bytes_per_s
        jitter_s = wire.jitter_s * self._network.chance.randrange(1000) / 1000
        at_s = free_at_s + wire.latency_s + jitter_s
        if inbox and at_s < inbox[-1][0]:
            at_s = inbox[-1][0]
        inbox.append((at_s, what))
        other.inbox_bytes += size
        other.deliver_soon()

    def _answer_reset(self) -> None:
        """Reset the connection, because the restarted machine does not know it."""
        self.inbox.append((self._loop.time(), _Bye(ConnectionResetError("unknown there"))))
        self.deliver_soon()

    def _deliver(self) -> None:
        self._timer = None
        while self.inbox and not self.is_gone:
            at_s, what = self.inbox[0]
            if at_s > self._loop.time():
                self.deliver_soon()
                return
            source = self.other.node if self.other is not None else self.node
            if self.is_held or self._network.wire(source, self.node).is_cut:
                return
            if self._network.is_halted(self.node):
                return
            if isinstance(what, _Bye):
                del self.inbox[0]
                self._end(what.reason)
                return
            if not self._reading:
                return
            del self.inbox[0]
            self.inbox_bytes -= len(what)
            if self.other is not None:
                self.other.wake_drained()
            if self._network.trace is not None:
                self._network.trace(at_s, source, self.node, what)
            self._show(what)
            self._hand_over(what)

    def _show(self, payload: bytes) -> None:
        """Let the checkers see the frame."""
        if self.is_accepted:
            if self._network.asked is not None:
                self._network.asked(self, payload)
        elif self._network.answered is not None and self.other is not None:
            self._network.answered(self.other, payload)

    def _hand_over(self, payload: bytes) -> None:
        if len(payload) > self._max_frame_bytes:
            self.abort(BadFrame(f"{self.peer} sends a frame of {len(payload)} bytes"))
            return
        try:
            self._handler.frame(payload)
        except BadFrame as error:
            self.abort(error)
        except Exception as error:
            self.abort(error)
            raise

    def _end(self, reason: Exception | None) -> None:
        if self.is_gone:
            return
        self.is_gone = self._hung_up = True
        self._let_go()
        self._loop.call_soon(self._handler.closed, reason)

    def _let_go(self) -> None:
        self._network.remove(self)
        self.when_gone()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.wake_drained()

    def wake_drained(self) -> None:
        """Wake the tasks that wait for fewer unsent bytes."""
        if not self._drained:
            return
        waiting, self._drained = self._drained, []
        for each in waiting:
            if not each.done():
                each.set_result(None)


@dataclass(frozen=True, slots=True)
class _Bye:
    """The end of a connection, which travels like data."""

    reason: Exception | None
