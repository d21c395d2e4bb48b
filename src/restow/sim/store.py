"""A node's session with the store, which can be cut off.

The store itself never fails: it stands for a ZooKeeper ensemble. Only the connection fails. A node that is
cut off gets StoreUnavailable, its heartbeats do not arrive, and it learns that its session has expired only
when it reaches the store again, as a ZooKeeper client does. The session of a killed process lives on until
it expires.

Requests, answers and watch events take time on their way, so that other nodes come between a read and the
write that follows it. A halted node gets the answer when it goes on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.errors import StoreUnavailable
from restow.sim.clock import NodeClock

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from restow.cluster.store.errors import StoreError
    from restow.cluster.store.operations import Operation, Results
    from restow.cluster.store.protocol import Stat, StoreNode, Watch, WatchEvent
    from restow.cluster.store.session import EmbeddedSession
    from restow.cluster.store.tree import Tree

T = TypeVar("T")

LATENCY_S = 0.0005


class SimStore(EmbeddedStore):
    """The store of a simulated cluster, which checkers may look into."""

    on_write: Callable[[Sequence[Operation]], None] | None = None
    """Called after every transaction with what it has written."""

    @property
    def tree(self) -> Tree:
        return self._tree

    def transact(self, operations: Sequence[Operation], session_id: int) -> Results:
        results = super().transact(operations, session_id)
        if self.on_write is not None:
            self.on_write(operations)
        return results


class StoreAccess:
    """One node's connection to the store."""

    def __init__(self, store: EmbeddedStore, clock: NodeClock, session_timeout_s: float) -> None:
        self._store, self._clock = store, clock
        self._timeout_s = session_timeout_s
        self._beats = NodeClock()
        self._cut = False
        self._waiting: list[Callable[[], object]] = []
        self._lost_answers = 0
        self.latency_s = LATENCY_S
        self._sent = _Way()
        self._received = _Way()
        self._counted: tuple[int, asyncio.Future[None]] | None = None
        self._session: SimSession | None = None

    async def open_session(self) -> SimSession:
        """Open a session, or fail if the node is cut off."""
        if self._cut:
            raise StoreUnavailable("the store cannot be reached")
        inner = self._store.session(timeout_s=self._timeout_s, clock=self._beats)
        self._session = SimSession(self, inner)
        return self._session

    def expire(self) -> None:
        """Expire the session although the node is alive and connected."""
        if self._session is not None:
            self._store.expire(self._session.session_id)

    def abandon(self) -> None:
        """Forget the session of a dead process. It does not end before it expires."""
        if self._session is not None:
            self._session.is_abandoned, self._session = True, None
        self._beats.halt()
        self._beats = NodeClock()
        self._waiting = []
        self._lost_answers = 0
        if self._cut:
            self._beats.halt()

    @property
    def is_cut(self) -> bool:
        return self._cut

    def cut(self) -> None:
        """Let nothing through in either direction."""
        self._cut = True
        self._beats.halt()

    def mend(self) -> None:
        """Let everything through again."""
        self._cut = False
        if not self._clock.is_halted:
            self.go_on()

    def halt(self) -> None:
        """Stop with the halted node."""
        self._beats.halt()

    def go_on(self) -> None:
        """Deliver everything that arrived while the node was halted or cut off."""
        if self._cut or self._clock.is_halted:
            return
        self._beats.go_on()
        waiting, self._waiting = self._waiting, []
        for tell in waiting:
            tell()

    def lose_answers(self, count: int) -> None:
        """Carry out the next changes, but report their outcome as unknown."""
        self._lost_answers = count

    async def changes(self, count: int) -> None:
        """Wait until this node has made so many more changes. Their answers are still on their way then."""
        made: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._counted = count, made
        await made

    def tell(self, what: Callable[[], object]) -> None:
        """Notify the node as soon as it can be reached."""
        delay_s = self._received.delay_s(self.latency_s)
        asyncio.get_running_loop().call_later(delay_s, self._tell_now, what)

    def _tell_now(self, what: Callable[[], object]) -> None:
        if self._cut or self._clock.is_halted:
            self._waiting.append(what)
        else:
            what()

    async def read(self, work: Callable[[], Awaitable[T]]) -> T:
        if self._cut:
            await self._clock.sleep(1.0)
            raise StoreUnavailable("the store cannot be reached")
        await asyncio.sleep(self._sent.delay_s(self.latency_s))
        try:
            return await work()
        finally:
            await self._clock.sleep(self._received.delay_s(self.latency_s))
            if self._cut:
                raise StoreUnavailable("the connection to the store was lost before the answer came")

    async def change(self, work: Callable[[], Awaitable[T]]) -> T:
        done = await self.read(lambda: self._count(work))
        if self._lost_answers:
            self._lost_answers -= 1
            raise StoreUnavailable("the connection to the store was lost before the answer came")
        return done

    async def _count(self, work: Callable[[], Awaitable[T]]) -> T:
        done = await work()
        if self._counted is not None:
            left, made = self._counted
            self._counted = (left - 1, made) if left > 1 else None
            if left <= 1 and not made.done():
                made.set_result(None)
        return done


class _Way:
    """One direction between a node and the store: what comes later does not overtake."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._last_s = 0.0

    def delay_s(self, latency_s: float) -> float:
        """Return how long what is sent now takes."""
        now_s = self._loop.time()
        self._last_s = max(self._last_s, now_s + latency_s)
        return self._last_s - now_s


class SimSession:
    """`restow.cluster.store.protocol.Store` over a connection that can be cut."""

    def __init__(self, access: StoreAccess, inner: EmbeddedSession) -> None:
        self._access, self._inner = access, inner
        self.is_abandoned = False
        """Whether the process that opened it is dead: it can do nothing any more."""

    @property
    def session_id(self) -> int:
        return self._inner.session_id

    async def create(self, path: str, data: bytes = b"", **how: Any) -> str:
        return await self._change(lambda: self._inner.create(path, data, **how))

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        return await self._change(lambda: self._inner.set(path, data, version))

    async def delete(self, path: str, version: int = -1) -> None:
        await self._change(lambda: self._inner.delete(path, version))

    async def multi(self, operations: Sequence[Operation]) -> Results:
        return await self._change(lambda: self._inner.multi(operations))

    async def multi_each(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> tuple[Results | StoreError, ...]:
        try:
            return await self._change(lambda: self._inner.multi_each(transactions))
        except StoreUnavailable as error:
            return tuple(StoreUnavailable(str(error)) for _ in transactions)

    async def get(self, path: str) -> StoreNode:
        return await self._read(lambda: self._inner.get(path))

    async def exists(self, path: str) -> Stat | None:
        return await self._read(lambda: self._inner.exists(path))

    async def children(self, path: str) -> tuple[str, ...]:
        return await self._read(lambda: self._inner.children(path))

    async def get_each(self, paths: Sequence[str]) -> tuple[StoreNode | None, ...]:
        return await self._read(lambda: self._inner.get_each(paths))

    async def watch_data(self, path: str, watch: Watch) -> None:
        await self._read(lambda: self._inner.watch_data(path, self._told(watch)))

    async def watch_children(self, path: str, watch: Watch) -> None:
        await self._read(lambda: self._inner.watch_children(path, self._told(watch)))

    @property
    def in_doubt(self) -> bool:
        """Return False, so that a node that stood still answers as leader: epochs and the ISR must do."""
        return False

    async def confirm(self) -> None:
        await self._inner.confirm()

    def on_expired(self, callback: Callable[[], object]) -> None:
        self._inner.on_expired(lambda: self._tell(callback))

    async def close(self) -> None:
        """End the session. A node that is cut off cannot; its session expires later."""
        if self._access.is_cut and not self.is_abandoned:
            self._access.abandon()
        if not self.is_abandoned:
            await self._inner.close()

    async def _read(self, work: Callable[[], Awaitable[T]]) -> T:
        self._check()
        return await self._access.read(work)

    async def _change(self, work: Callable[[], Awaitable[T]]) -> T:
        self._check()
        return await self._access.change(work)

    def _check(self) -> None:
        if self.is_abandoned:
            raise StoreUnavailable("the process that opened the session is dead")

    def _tell(self, what: Callable[[], object]) -> None:
        if not self.is_abandoned:
            self._access.tell(what)

    def _told(self, watch: Watch) -> Watch:
        def tell(event: WatchEvent) -> None:
            self._tell(lambda: watch(event))

        return tell
