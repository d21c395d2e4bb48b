"""The connection to a ZooKeeper, between kazoo's threads and the loop.

kazoo delivers responses and watch events from two threads, which may overtake each other. Here both go
through one inbox in the order in which they arrived, and one wake-up of the loop handles all of them.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from kazoo.client import KazooClient
from kazoo.exceptions import WriterNotClosedException
from kazoo.handlers.threading import SequentialThreadingHandler
from kazoo.protocol.states import EventType, KazooState

from restow.cluster.store.errors import SessionExpired, StoreUnavailable
from restow.cluster.store.protocol import NodeChange, WatchEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from kazoo.interfaces import IAsyncResult
    from kazoo.protocol.states import WatchedEvent

    from restow.cluster.store.protocol import Watch

# kazoo warns even of a connection that we closed: silent unless the application sets logging up.
_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_RECONNECT = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 1.0}
_CHANGES = {
    EventType.CREATED: NodeChange.CREATED,
    EventType.CHANGED: NodeChange.SET,
    EventType.DELETED: NodeChange.DELETED,
    EventType.CHILD: NodeChange.CHILDREN,
}


class _AtOnce(queue.Queue[Any]):
    """A kazoo queue that runs its work in the putting thread. Our work only fills the inbox."""

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        if callable(item):
            item()
        else:
            super().put(item, block, timeout)


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    queue_impl = _AtOnce


@dataclass(frozen=True, slots=True)
class _LinkedWatch:
    """The callback for kazoo. Equal for equal watches, so that kazoo keeps only one."""

    link: ZooKeeperLink
    path: str
    watch: Watch

    def __call__(self, event: WatchedEvent) -> None:
        change = _CHANGES.get(event.type, NodeChange.UNKNOWN)
        self.link.hand_over(partial(self.link.tell, self.watch, WatchEvent(change, self.path)))


class ZooKeeperLink:
    """One connection with one session. Requests after the loss of the session are never sent."""

    def __init__(self, hosts: str, timeout_s: float, when_state: Callable[[str], object]) -> None:
        self._loop = asyncio.get_running_loop()
        self._hosts = hosts
        self._when_state = when_state
        self._inbox: deque[Callable[[], object]] = deque()
        self._wake_up_is_due = False
        self._gate = threading.Lock()
        self._lost = False
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self.client = KazooClient(
            hosts, timeout=timeout_s, handler=_Handler(), connection_retry=dict(_RECONNECT), logger=_LOG
        )
        self.client.add_listener(self._state_changed)

    async def open(self, timeout_s: float) -> int:
        """Connect and return the session's id."""
        try:
            self.client.start_async()
            async with asyncio.timeout(timeout_s):
                await self._opened
        except TimeoutError as error:
            await self.close()
            raise StoreUnavailable(
                f"no ZooKeeper answered at {self._hosts} within {timeout_s:g} s: "
                "check the address and that it is running"
            ) from error
        except BaseException:
            await self.close()
            raise
        session_id: int = self.client.client_id[0]
        return session_id

    @property
    def connected(self) -> bool:
        """Return whether a server is connected now."""
        return not self._lost and bool(self.client.connected)

    async def close(self) -> None:
        """End the session, if it has not ended, and the threads."""
        with self._gate:
            self._lost = True
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        try:
            self.client.stop()
        except WriterNotClosedException:
            _LOG.warning("the connection to ZooKeeper at %s does not end by itself", self._hosts)
        self.client.close()

    def ask(self, send: Callable[[], IAsyncResult]) -> asyncio.Future[Any]:
        """Send a request. The future's exception is kazoo's.

        The lock keeps a request out of the new session that kazoo opens by itself after a loss: it is queued
        before the loss, and fails with it, or it is not queued.
        """
        future = self._loop.create_future()
        with self._gate:
            if self._lost:
                raise SessionExpired("the session with ZooKeeper is over")
            answer = send()
        answer.rawlink(lambda answer: self.hand_over(partial(_settle, future, answer)))
        return future

    def watcher(self, path: str, watch: Watch) -> Callable[[WatchedEvent], None]:
        """Return the kazoo callback for a watch."""
        return _LinkedWatch(self, path, watch)

    def tell(self, watch: Watch, event: WatchEvent) -> None:
        """Call a watch. Its exception goes to the loop's handler."""
        if self._lost:
            return
        try:
            watch(event)
        except Exception as error:  # noqa: BLE001
            context = {"message": "a watch on the store raised", "exception": error}
            self._loop.call_exception_handler(context)

    def hand_over(self, work: Callable[[], object]) -> None:
        """Run work on the loop, in order, from any thread."""
        self._inbox.append(work)
        if not self._wake_up_is_due:
            self._wake_up_is_due = True
            with suppress(RuntimeError):  # the loop is closed, so there are no callers left
                self._loop.call_soon_threadsafe(self._empty_inbox)

    def _empty_inbox(self) -> None:
        self._wake_up_is_due = False
        while self._inbox:
            self._inbox.popleft()()

    def _state_changed(self, state: str) -> None:
        if state == KazooState.LOST:
            with self._gate:
                self._lost = True
        self.hand_over(partial(self._state_is, state))

    def _state_is(self, state: str) -> None:
        if state == KazooState.CONNECTED and not self._opened.done():
            self._opened.set_result(None)
        self._when_state(state)


def _settle(future: asyncio.Future[Any], answer: IAsyncResult) -> None:
    if future.done():
        return
    if answer.exception is not None:
        future.set_exception(answer.exception)
    else:
        future.set_result(answer.value)
