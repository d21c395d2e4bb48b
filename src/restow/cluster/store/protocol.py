"""What a broker may ask of the store, whichever it is.

Requests of one session are carried out in the order in which they were made, awaited or not. A change
that was acknowledged is durable, and whoever reads afterwards sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

from restow.cluster.store.errors import NodeExists
from restow.cluster.store.operations import Create

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from restow.cluster.store.errors import StoreError
    from restow.cluster.store.operations import Operation, Results


class Stat(NamedTuple):
    """A node's counters. A tuple, because one is made for every node that is read or written."""

    version: int
    """How often the data was set."""
    cversion: int
    """How often a child came or went."""
    czxid: int
    """The transaction that created it. Grows over the whole store, so it serves as an epoch."""
    mzxid: int
    """The transaction that last set its data."""
    ephemeral_owner: int
    """The session it goes away with, 0 if it stays."""


class StoreNode(NamedTuple):
    """A node's data and counters, read together."""

    data: bytes
    stat: Stat


class NodeChange(Enum):
    """What a watch saw."""

    CREATED = "created"
    SET = "set"
    DELETED = "deleted"
    CHILDREN = "children"
    UNKNOWN = "unknown"
    """The connection was away for a while, and what happened meanwhile is not known: look again."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change of one node."""

    change: NodeChange
    path: str


Watch: TypeAlias = "Callable[[WatchEvent], object]"
"""Called on the loop, once, before any read of the session can show the change. It must not block and
is best kept to putting an event into a queue."""


class Store(Protocol):
    """One session of one broker.

    When the session ends, by `close` or by expiry, its ephemeral nodes are deleted and its watches
    forgotten, and every later request raises SessionExpired.
    """

    @property
    def session_id(self) -> int:
        """As in `Stat.ephemeral_owner` of the nodes that go away with it."""

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """The path of the new node, which is longer than asked for if sequential."""

    async def get(self, path: str) -> StoreNode:
        """Data and counters; NoNode if it is not there."""

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        """Replace the data, if the version is still that (any for -1)."""

    async def delete(self, path: str, version: int = -1) -> None:
        """Delete a node that has no children, if the version is still that (any for -1)."""

    async def exists(self, path: str) -> Stat | None:
        """The counters, or None if there is no such node."""

    async def children(self, path: str) -> tuple[str, ...]:
        """The children's names, sorted, without the path."""

    async def multi(self, operations: Sequence[Operation]) -> Results:
        """All operations or none. Raises what the first refused one would; `operation` tells which."""

    async def multi_each(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> tuple[Results | StoreError, ...]:
        """Many transactions, each all or none by itself, without waiting between them.

        One that was refused, or whose fate is not known, is answered with its error, and the others
        go on. Only a session that is over already makes it raise.
        """

    async def get_each(self, paths: Sequence[str]) -> tuple[StoreNode | None, ...]:
        """Many nodes, None for those that are not there, without waiting between them."""

    async def watch_data(self, path: str, watch: Watch) -> None:
        """Tell of the next creation, change of data or deletion of the node, which need not exist yet.

        Watch first and read afterwards, and no change goes unnoticed.
        """

    async def watch_children(self, path: str, watch: Watch) -> None:
        """Tell when next a child comes or goes, or the node itself is deleted. NoNode if it is not there."""

    def on_expired(self, callback: Callable[[], object]) -> None:
        """Called once, on the loop, if the session ends in another way than by `close`."""

    async def close(self) -> None:
        """End the session. Again does nothing."""


async def ensure_paths(store: Store, paths: Iterable[str]) -> None:
    """Create those of the paths, and of the nodes above them, that are missing; all in one go."""
    wanted: dict[str, None] = {}
    for path in paths:
        names = path.strip("/").split("/")
        for end in range(1, len(names) + 1):
            wanted["/" + "/".join(names[:end])] = None
    for answer in await store.multi_each([(Create(path),) for path in wanted]):
        if isinstance(answer, Exception) and not isinstance(answer, NodeExists):
            raise answer
