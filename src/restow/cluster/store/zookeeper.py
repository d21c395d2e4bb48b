"""A session with a real ZooKeeper.

    store = await ZooKeeperStore.connect("127.0.0.1:2181/kafka")

Requests queue up while others are in flight. Adjacent queued transactions are sent as one, which ZooKeeper
carries out hundreds of times faster; if it refuses, none of them happened, and they are sent one by one.
Adjacent reads are sent together.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

from kazoo import exceptions as kazoo
from kazoo.protocol.states import KazooState

from restow.cluster.store.errors import (
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionExpired,
    StoreError,
    StoreUnavailable,
    TooLarge,
)
from restow.cluster.store.operations import Create, Delete, Operation, Result, Results, Set, checked
from restow.cluster.store.paths import check_path, parent_of
from restow.cluster.store.protocol import Stat, StoreNode
from restow.cluster.store.zookeeper_link import ZooKeeperLink
from restow.runtime.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from kazoo.client import KazooClient
    from kazoo.interfaces import IAsyncResult
    from kazoo.protocol.states import ZnodeStat

    from restow.cluster.store.protocol import Watch
    from restow.runtime.clock import Clock, Timer

SESSION_TIMEOUT_S = 18.0
_BEATS_PER_TIMEOUT = 3
_CONNECT_TIMEOUT_S = 30.0
# A server accepts requests below 1 MiB by default. An operation takes less than this besides its path and
# data.
_LARGEST_REQUEST_BYTES = 1_000_000
_OPERATION_BYTES = 64

_REFUSALS = {
    kazoo.NoNodeError: NoNode,
    kazoo.NodeExistsError: NodeExists,
    kazoo.BadVersionError: BadVersion,
    kazoo.NotEmptyError: NotEmpty,
    kazoo.NoChildrenForEphemeralsError: NoChildrenForEphemerals,
}
_OVER = (kazoo.SessionExpiredError, kazoo.ConnectionClosedError)
_NOT_DONE = (kazoo.RolledBackError, kazoo.RuntimeInconsistency)


@dataclass(slots=True, eq=False)
class _Write:
    operations: tuple[Operation, ...]
    size: int
    answer: asyncio.Future[Results]


@dataclass(slots=True, eq=False)
class _Read:
    send: Callable[[], IAsyncResult]
    path: str
    answer: asyncio.Future[Any]


class ZooKeeperStore:
    """A `Store` on ZooKeeper. When disconnected for longer than its timeout, it counts as expired."""

    def __init__(
        self, hosts: str, *, timeout_s: float = SESSION_TIMEOUT_S, clock: Clock | None = None
    ) -> None:
        """Make an unconnected store; use `connect` instead."""
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()
        self._link = ZooKeeperLink(hosts, timeout_s, self._state_changed)
        self._session_id = 0
        self._queue: list[_Write | _Read] = []
        self._sender: asyncio.Task[None] | None = None
        self._ended = ""
        self._closing: asyncio.Task[None] | None = None
        self._cut_off: Timer | None = None
        self._when_expired: list[Callable[[], object]] = []
        self._lives_until_s = 0.0
        """Until then the server cannot have expired the session: it has answered late enough."""
        self._beat: Timer | None = None

    @classmethod
    async def connect(
        cls,
        hosts: str,
        *,
        timeout_s: float = SESSION_TIMEOUT_S,
        connect_timeout_s: float = _CONNECT_TIMEOUT_S,
        clock: Clock | None = None,
    ) -> ZooKeeperStore:
        """Open a session at `host:port,host:port/root`; a given root must exist."""
        store = cls(hosts, timeout_s=timeout_s, clock=clock)
        store._session_id = await store._link.open(connect_timeout_s)
        store._keep_confirmed()
        return store

    @property
    def session_id(self) -> int:
        return self._session_id

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        (made,) = await self.multi((Create(path, data, ephemeral, sequential),))
        return cast("str", made)

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        (stat,) = await self.multi((Set(path, data, version),))
        return cast("Stat", stat)

    async def delete(self, path: str, version: int = -1) -> None:
        await self.multi((Delete(path, version),))

    async def multi(self, operations: Sequence[Operation]) -> Results:
        return await self._write(operations)

    async def multi_each(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> tuple[Results | StoreError, ...]:
        answers = [self._write(each) for each in [*map(checked, transactions)]]
        outcomes = await asyncio.gather(*answers, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException) and not isinstance(outcome, StoreError):
                raise outcome
        return tuple(cast("list[Results | StoreError]", outcomes))

    async def get(self, path: str) -> StoreNode:
        return _node(await self._read(path, self._link.client.get_async))

    async def exists(self, path: str) -> Stat | None:
        stat = await self._read(path, self._link.client.exists_async)
        return None if stat is None else _stat(stat)

    async def children(self, path: str) -> tuple[str, ...]:
        return tuple(sorted(await self._read(path, self._link.client.get_children_async)))

    async def get_each(self, paths: Sequence[str]) -> tuple[StoreNode | None, ...]:
        answers = [self._read(path, self._link.client.get_async) for path in [*map(check_path, paths)]]
        found: list[StoreNode | None] = []
        for outcome in await asyncio.gather(*answers, return_exceptions=True):
            if isinstance(outcome, NoNode):
                found.append(None)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                found.append(_node(outcome))
        return tuple(found)

    async def watch_data(self, path: str, watch: Watch) -> None:
        watcher = self._link.watcher(path, watch)
        await self._read(path, lambda path: self._link.client.exists_async(path, watcher))

    async def watch_children(self, path: str, watch: Watch) -> None:
        watcher = self._link.watcher(path, watch)
        await self._read(path, lambda path: self._link.client.get_children_async(path, watcher))

    def on_expired(self, callback: Callable[[], object]) -> None:
        self._when_expired.append(callback)

    @property
    def in_doubt(self) -> bool:
        return self._clock.monotonic_s() > self._lives_until_s

    async def confirm(self) -> None:
        await self.exists("/")

    def _keep_confirmed(self) -> None:
        """Ask the server something now and then, so that the session is in doubt only after a standstill."""
        if not self._ended:
            self._read("/", self._link.client.exists_async).add_done_callback(_forget)
            self._beat = self._clock.call_later(self._timeout_s / _BEATS_PER_TIMEOUT, self._keep_confirmed)

    async def close(self) -> None:
        if not self._ended:
            self._end("was closed")
        if self._closing:
            await self._closing

    # End of the session

    def _state_changed(self, state: str) -> None:
        if self._cut_off:
            self._cut_off.cancel()
            self._cut_off = None
        if self._ended:
            return
        if state == KazooState.LOST:
            self._expire()
        elif state == KazooState.SUSPENDED:
            self._cut_off = self._clock.call_later(self._timeout_s, self._expire)

    def _expire(self) -> None:
        if self._ended:
            return
        self._end("expired")
        for callback in self._when_expired:
            callback()

    def _end(self, how: str) -> None:
        self._ended = how
        if self._beat is not None:
            self._beat.cancel()
        self._closing = asyncio.create_task(self._close())

    async def _close(self) -> None:
        """Finish queued requests, unless the connection is lost, then close."""
        if self._link.connected and self._sender:
            await asyncio.wait({self._sender}, timeout=self._timeout_s)
        await self._link.close()

    def _over(self) -> SessionExpired:
        return SessionExpired(f"session {self._session_id:#x} with ZooKeeper {self._ended or 'expired'}")

    # Requests

    def _write(self, operations: Sequence[Operation]) -> asyncio.Future[Results]:
        found = checked(operations)
        size = sum(map(_size, found))
        if size > _LARGEST_REQUEST_BYTES:
            raise TooLarge(
                f"a request of {size} bytes is more than a ZooKeeper takes ({_LARGEST_REQUEST_BYTES}): "
                "split it, or have fewer partitions in one topic",
                path=found[0].path,
            )
        write = _Write(found, size, asyncio.get_running_loop().create_future())
        self._enqueue(write)
        return write.answer

    def _read(self, path: str, send: Callable[[str], IAsyncResult]) -> asyncio.Future[Any]:
        read = _Read(partial(send, check_path(path)), path, asyncio.get_running_loop().create_future())
        self._enqueue(read)
        return read.answer

    def _enqueue(self, request: _Write | _Read) -> None:
        if self._ended:
            raise self._over()
        self._queue.append(request)
        if self._sender is None or self._sender.done():
            self._sender = asyncio.create_task(self._send())

    async def _send(self) -> None:
        """Send group after group until the queue is empty. Each is answered before the next is sent."""
        while self._queue:
            waiting, self._queue = self._queue, []
            for group in _neighbours(waiting):
                if isinstance(group[0], _Write):
                    await self._send_writes(group)
                else:
                    await self._send_reads(group)

    async def _send_reads(self, reads: list[_Read]) -> None:
        sent = [self._ask(read.send) for read in reads]
        for read, answer in zip(reads, await asyncio.gather(*sent), strict=True):
            outcome = answer
            if isinstance(answer, Exception):
                outcome = self._error(answer, read.path)
            _answer(read.answer, outcome)

    async def _send_writes(self, writes: list[_Write]) -> None:
        together = tuple(operation for write in writes for operation in write.operations)
        outcome = await self._transact(together)
        if isinstance(outcome, tuple):
            done = iter(outcome)
            for write in writes:
                _answer(write.answer, tuple(islice(done, len(write.operations))))
        elif len(writes) == 1 or isinstance(outcome, SessionExpired | StoreUnavailable):
            for write in writes:
                _answer(write.answer, outcome)
        else:
            outcomes = await asyncio.gather(*(self._transact(write.operations) for write in writes))
            for write, each in zip(writes, outcomes, strict=True):
                _answer(write.answer, each)

    async def _transact(self, operations: tuple[Operation, ...]) -> Results | StoreError:
        if not operations:
            return ()
        answers = await self._ask(partial(_commit, self._link.client, operations))
        if isinstance(answers, Exception):
            return self._error(answers, operations[0].path)
        for index, (operation, answer) in enumerate(zip(operations, answers, strict=True)):
            if isinstance(answer, Exception) and not isinstance(answer, _NOT_DONE):
                error = self._error(answer, _path_at_fault(operation, answer))
                error.operation = index
                return error
        return tuple(map(_result, answers))

    async def _ask(self, send: Callable[[], IAsyncResult]) -> Any:
        """Return the response, or kazoo's exception as a value."""
        asked_s = self._clock.monotonic_s()
        try:
            answer = await self._link.ask(send)
        except (kazoo.KazooException, SessionExpired) as error:
            return error
        self._lives_until_s = max(self._lives_until_s, asked_s + self._timeout_s)
        return answer

    def _error(self, error: Exception, path: str) -> StoreError:
        if refusal := _REFUSALS.get(type(error)):
            return refusal(path)
        if self._ended or isinstance(error, (SessionExpired, *_OVER)):
            return self._over()
        if isinstance(error, kazoo.ConnectionLoss | kazoo.OperationTimeoutError):
            return StoreUnavailable(
                "the connection to ZooKeeper was lost: the change may have been made or not"
            )
        return StoreError(f"ZooKeeper refused a request for {path}: {type(error).__name__}", path=path)


def _forget(answer: asyncio.Future[Any]) -> None:
    """Take the error of a question that nobody waits for."""
    if not answer.cancelled():
        answer.exception()


def _neighbours(requests: list[_Write | _Read]) -> Iterator[list[_Write] | list[_Read]]:
    """Split into runs of reads, and runs of transactions that fit into one request."""
    group: list[Any] = []
    size = 0
    for request in requests:
        added = request.size if isinstance(request, _Write) else 0
        if group and (type(request) is not type(group[0]) or size + added > _LARGEST_REQUEST_BYTES):
            yield group
            group, size = [], 0
        group.append(request)
        size += added
    if group:
        yield group


def _commit(client: KazooClient, operations: tuple[Operation, ...]) -> IAsyncResult:
    transaction = client.transaction()
    for operation in operations:
        if isinstance(operation, Create):
            transaction.create(
                operation.path,
                operation.data,
                ephemeral=operation.ephemeral,
                sequence=operation.sequential,
            )
        elif isinstance(operation, Set):
            transaction.set_data(operation.path, operation.data, operation.version)
        elif isinstance(operation, Delete):
            transaction.delete(operation.path, operation.version)
        else:
            transaction.check(operation.path, operation.version)
    return transaction.commit_async()


def _size(operation: Operation) -> int:
    data = operation.data if isinstance(operation, Create | Set) else b""
    return len(operation.path.encode()) + len(data) + _OPERATION_BYTES


def _path_at_fault(operation: Operation, error: Exception) -> str:
    if isinstance(operation, Create) and isinstance(error, kazoo.NoNodeError):
        return parent_of(operation.path)
    return operation.path


def _result(answer: object) -> Result:
    if isinstance(answer, str):
        return answer
    return None if answer is True else _stat(cast("ZnodeStat", answer))


def _stat(stat: ZnodeStat) -> Stat:
    return Stat(stat.version, stat.cversion, stat.czxid, stat.mzxid, stat.ephemeralOwner)


def _node(answer: tuple[bytes | None, ZnodeStat]) -> StoreNode:
    """Convert a node. Missing data, which Kafka also writes, counts as empty here."""
    data, stat = answer
    return StoreNode(data or b"", _stat(stat))


def _answer(future: asyncio.Future[Any], outcome: object) -> None:
    if future.done():
        return
    if isinstance(outcome, Exception):
        future.set_exception(outcome)
    else:
        future.set_result(outcome)
