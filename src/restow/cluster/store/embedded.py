"""The store inside this process, shared by the sessions of many brokers.

    server = EmbeddedStore(folder / "store.sqlite")
    store = server.session()

Requests are queued. At its next turn the loop carries out all of them in order, writes them to disk together
and only then answers them. So no reader sees a change before it is durable, and a thousand concurrent changes
cost one write.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from restow.cluster.store.database import Database
from restow.cluster.store.errors import StoreError, StoreUnavailable
from restow.cluster.store.paths import check_path
from restow.cluster.store.protocol import NodeChange, WatchEvent
from restow.cluster.store.session import EmbeddedSession, Pulse
from restow.cluster.store.tree import Tree
from restow.cluster.store.watches import Watches
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from restow.cluster.store.operations import Operation, Results
    from restow.cluster.store.protocol import Watch
    from restow.cluster.store.watches import Call
    from restow.runtime.clock import Clock

T = TypeVar("T")

SESSION_TIMEOUT_S = 18.0
"""Kafka's default."""


class _Request(NamedTuple):
    work: Callable[[], Any]
    answer: asyncio.Future[Any]


class EmbeddedStore:
    """The server: the tree, its file, its sessions and their watches."""

    def __init__(self, file: Path | None = None, *, fsync: bool = True, clock: Clock | None = None) -> None:
        """Load the file; without a file nothing outlives the process.

        `fsync` as for `Database`: without it, acknowledged changes survive a kill of the process but not
        necessarily a power loss.
        """
        self._clock = clock or SystemClock()
        self._database = None if file is None else Database(file, fsync=fsync)
        rows, zxid = self._database.load() if self._database else ([], 0)
        self._tree = Tree(rows, zxid=zxid)
        self._watches = Watches()
        self._sessions: dict[int, EmbeddedSession] = {}
        self._queue: list[_Request] = []
        self._calls: list[Call] = []
        self._written_zxid = zxid
        self._closed = False

    def session(self, *, timeout_s: float = SESSION_TIMEOUT_S, clock: Clock | None = None) -> EmbeddedSession:
        """Open a session. Its own clock beats, the server's expires it. Needs a running loop."""
        if self._closed:
            raise StoreUnavailable("the embedded store is closed")
        self._tree.zxid += 1
        session_id = self._tree.zxid
        pulse = Pulse(
            timeout_s,
            beats_by=clock or self._clock,
            expires_by=self._clock,
            expire=partial(self.expire, session_id),
        )
        session = EmbeddedSession(self, session_id, pulse)
        self._sessions[session_id] = session
        return session

    def expire(self, session_id: int) -> None:
        """Expire a session, as if its heartbeats had stopped."""
        if session := self._sessions.get(session_id):
            session.expire()

    async def close(self) -> None:
        """End all sessions without notice, and close the file."""
        self._closed = True
        await asyncio.gather(*(session.close() for session in tuple(self._sessions.values())))
        if self._database:
            self._database.close()

    # For the sessions

    def submit(self, work: Callable[[], T]) -> asyncio.Future[T]:
        """Queue the work for the loop's next turn."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        if not self._queue:
            loop.call_soon(self._serve)
        self._queue.append(_Request(work, answer))
        return answer

    async def read(self, work: Callable[[Tree], T]) -> T:
        """Read at once if the queue is empty, otherwise after earlier requests."""
        if self._queue:
            return await self.submit(partial(work, self._tree))
        return work(self._tree)

    def transact(self, operations: Sequence[Operation], session_id: int) -> Results:
        """Queue one transaction."""
        results, events = self._tree.transact(operations, session_id)
        self._calls += self._watches.take(events)
        return results

    def transact_each(
        self, transactions: Sequence[Sequence[Operation]], session_id: int
    ) -> tuple[Results | StoreError, ...]:
        """Queue many independent transactions."""
        return tuple(_attempt(partial(self.transact, each, session_id)) for each in transactions)

    def watch_data(self, path: str, session_id: int, watch: Watch) -> None:
        """Queue a data watch."""
        self._watches.add_data(check_path(path), session_id, watch)

    def watch_children(self, path: str, session_id: int, watch: Watch) -> None:
        """Queue a child watch."""
        self._tree.get(path)
        self._watches.add_children(path, session_id, watch)

    def end(self, session_id: int) -> None:
        """Queue the deletion of the session's ephemeral nodes."""
        self._watches.forget(session_id)
        self._calls += self._watches.take(self._tree.delete_ephemerals(session_id))
        self._sessions.pop(session_id, None)

    # Serving

    def _serve(self) -> None:
        """Carry out the queue, write it, call the watches and then complete the requests."""
        requests, self._queue = self._queue, []
        outcomes = [_attempt(request.work) for request in requests]
        try:
            self._write()
        except StoreUnavailable as error:
            self._give_up()
            outcomes = [StoreUnavailable(str(error)) for _ in requests]
        calls, self._calls = self._calls, []
        for watch, event in calls:
            _call(partial(watch, event))
        for request, outcome in zip(requests, outcomes, strict=True):
            if request.answer.done():
                continue
            if isinstance(outcome, StoreError):
                request.answer.set_exception(outcome)
            else:
                request.answer.set_result(outcome)

    def _write(self) -> None:
        kept, gone = self._tree.unsettled()
        if self._database and (kept or gone or self._tree.zxid != self._written_zxid):
            self._database.write(kept, gone, self._tree.zxid)
            self._written_zxid = self._tree.zxid
        self._tree.settle()

    def _give_up(self) -> None:
        """Undo everything since the last write, but keep ended sessions' ephemeral nodes deleted."""
        self._tree.roll_back()
        for owner in self._tree.owners() - self._sessions.keys():
            self._calls += self._watches.take(self._tree.delete_ephemerals(owner))
        self._tree.settle()
        self._calls = [(watch, WatchEvent(NodeChange.UNKNOWN, event.path)) for watch, event in self._calls]


def _attempt(work: Callable[[], T]) -> T | StoreError:
    try:
        return work()
    except StoreError as error:
        return error


def _call(watch: Callable[[], object]) -> None:
    """Call a watch. Its exception goes to the loop's handler, and the next watch is called."""
    try:
        watch()
    except Exception as error:  # noqa: BLE001
        asyncio.get_running_loop().call_exception_handler(
            {"message": "a watch on the store raised", "exception": error}
        )
