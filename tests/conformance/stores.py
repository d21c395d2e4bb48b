"""The store's two implementations behind one interface, so that one suite tests both."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Protocol

from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.zookeeper import ZooKeeperStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from restow.cluster.store import Store

TIMEOUT_S = 30.0
"""Session timeout: longer than a busy machine may hang."""
_TAKEN_BACK_S = 8.0
_TEST_S = 180.0


class Server(Protocol):
    """A server to open sessions with."""

    async def session(self) -> Store:
        """Open a session."""

    async def expire(self, store: Store) -> None:
        """Let the server expire a session, and wait until the session knows."""

    async def stop(self) -> None:
        """End the remaining sessions."""


@dataclass
class Embedded:
    file: Path | None
    server: EmbeddedStore | None = None

    async def session(self) -> Store:
        if self.server is None:
            self.server = EmbeddedStore(self.file, fsync=False)
        return self.server.session()

    async def expire(self, store: Store) -> None:
        assert self.server is not None
        expired = asyncio.Event()
        store.on_expired(expired.set)
        self.server.expire(store.session_id)
        await expired.wait()

    async def stop(self) -> None:
        if self.server is not None:
            await self.server.close()
            self.server = None


@dataclass
class Remote:
    address: str
    sessions: list[ZooKeeperStore] = field(default_factory=list)

    async def fresh(self) -> Remote:
        """Return the same server with a new root."""
        root = await (await self.session()).create("/root_", sequential=True)
        await self.stop()
        return Remote(f"{self.address}{root}")

    async def session(self) -> Store:
        store = await ZooKeeperStore.connect(self.address, timeout_s=TIMEOUT_S)
        self.sessions.append(store)
        return store

    async def expire(self, store: Store) -> None:
        """Take the session over with another client and close it; repeat if the owner takes it back."""
        from kazoo.client import KazooClient
        from kazoo.exceptions import ConnectionLoss

        assert isinstance(store, ZooKeeperStore)
        expired = asyncio.Event()
        store.on_expired(expired.set)
        server, _, _ = self.address.partition("/")
        while not expired.is_set():
            intruder = KazooClient(server, client_id=store._link.client.client_id)
            try:
                await asyncio.to_thread(intruder.start)
            except ConnectionLoss:
                continue
            finally:
                await asyncio.to_thread(intruder.stop)
                intruder.close()
            with suppress(TimeoutError):
                async with asyncio.timeout(_TAKEN_BACK_S):
                    await expired.wait()

    async def stop(self) -> None:
        while self.sessions:
            await self.sessions.pop().close()


def played(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a coroutine test on its own loop, then end the server's sessions."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def play() -> None:
            try:
                async with asyncio.timeout(_TEST_S):
                    await test(*args, **kwargs)
            finally:
                if "server" in kwargs:
                    await kwargs["server"].stop()

        asyncio.run(play())

    return run
