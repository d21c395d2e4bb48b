"""One broker's session with the embedded store, and the heartbeat that keeps it alive."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

from restow.cluster.store.errors import SessionExpired, StoreUnavailable
from restow.cluster.store.operations import Create, Delete, Set, checked
from restow.cluster.store.tree import Tree

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

    from restow.cluster.store.embedded import EmbeddedStore
    from restow.cluster.store.errors import StoreError
    from restow.cluster.store.operations import Operation, Result, Results
    from restow.cluster.store.protocol import Stat, StoreNode, Watch
    from restow.runtime.clock import Clock

_BEATS_PER_TIMEOUT = 3


class Pulse:
    """Beats by the broker's clock and expires by the server's, so a frozen broker expires."""

    def __init__(
        self, timeout_s: float, *, beats_by: Clock, expires_by: Clock, expire: Callable[[], object]
    ) -> None:
        self._timeout_s = timeout_s
        self._beats_by = beats_by
        self._expires_by = expires_by
        self._expire = expire
        self._beat()
        self._deadline = expires_by.call_later(timeout_s, self._look)

    def _beat(self) -> None:
        self._last_s = self._expires_by.monotonic_s()
        self._next = self._beats_by.call_later(self._timeout_s / _BEATS_PER_TIMEOUT, self._beat)

    def _look(self) -> None:
        left_s = self._last_s + self._timeout_s - self._expires_by.monotonic_s()
        if left_s > 0:
            self._deadline = self._expires_by.call_later(left_s, self._look)
        else:
            self._expire()

    def stop(self) -> None:
        """Stop beating and expecting beats."""
        self._next.cancel()
        self._deadline.cancel()


class EmbeddedSession:
    """A `Store` on an `EmbeddedStore`."""

    def __init__(self, server: EmbeddedStore, session_id: int, pulse: Pulse) -> None:
        self._server = server
        self._session_id = session_id
        self._pulse = pulse
        self._ended = ""
        self._when_expired: list[Callable[[], object]] = []

    @property
    def session_id(self) -> int:
        return self._session_id

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        return cast("str", await self._one(Create(path, data, ephemeral, sequential)))

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        return cast("Stat", await self._one(Set(path, data, version)))

    async def delete(self, path: str, version: int = -1) -> None:
        await self._one(Delete(path, version))

    async def multi(self, operations: Sequence[Operation]) -> Results:
        return await self._submit(operations)

    async def multi_each(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> tuple[Results | StoreError, ...]:
        self._check()
        work = partial(self._server.transact_each, [*map(checked, transactions)], self._session_id)
        try:
            return await self._server.submit(work)
        except StoreUnavailable as error:
            return tuple(StoreUnavailable(str(error)) for _ in transactions)

    async def get(self, path: str) -> StoreNode:
        self._check()
        return await self._server.read(partial(Tree.get, path=path))

    async def exists(self, path: str) -> Stat | None:
        self._check()
        node = await self._server.read(partial(Tree.find, path=path))
        return None if node is None else node.stat

    async def children(self, path: str) -> tuple[str, ...]:
        self._check()
        return await self._server.read(partial(Tree.children, path=path))

    async def get_each(self, paths: Sequence[str]) -> tuple[StoreNode | None, ...]:
        self._check()
        return await self._server.read(lambda tree: tuple(map(tree.find, paths)))

    async def watch_data(self, path: str, watch: Watch) -> None:
        self._check()
        await self._server.submit(partial(self._server.watch_data, path, self._session_id, watch))

    async def watch_children(self, path: str, watch: Watch) -> None:
        self._check()
        await self._server.submit(partial(self._server.watch_children, path, self._session_id, watch))

    @property
    def in_doubt(self) -> bool:
        return False

    async def confirm(self) -> None:
        """Do nothing: the server is in this process and stands still with it."""

    def on_expired(self, callback: Callable[[], object]) -> None:
        self._when_expired.append(callback)

    async def close(self) -> None:
        if not self._ended:
            await self._end("was closed")

    def expire(self) -> None:
        """Expire the session, and call back when its nodes are gone."""
        if not self._ended:
            self._end("expired").add_done_callback(self._tell)

    def _end(self, how: str) -> asyncio.Future[None]:
        self._ended = how
        self._pulse.stop()
        return self._server.submit(partial(self._server.end, self._session_id))

    def _tell(self, ended: asyncio.Future[None]) -> None:
        ended.exception()
        for callback in self._when_expired:
            callback()

    def _check(self) -> None:
        if self._ended:
            raise SessionExpired(f"session {self._session_id:#x} {self._ended}")

    def _submit(self, operations: Sequence[Operation]) -> asyncio.Future[Results]:
        self._check()
        return self._server.submit(partial(self._server.transact, checked(operations), self._session_id))

    async def _one(self, operation: Operation) -> Result:
        return (await self._submit((operation,)))[0]
