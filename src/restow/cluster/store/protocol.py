"""The store's interface for brokers.

A session's requests are carried out in the order in which they were made, awaited or not. An acknowledged
change is durable and visible to every later read.
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
    """A node's counters. A tuple, because every read and write makes one."""

    version: int
    """Number of changes of the data."""
    cversion: int
    """Number of changes of the children."""
    czxid: int
    """Transaction that created the node. It grows over the whole store, so it serves as an epoch."""
    mzxid: int
    """Transaction that last set the data."""
    ephemeral_owner: int
    """Session that owns an ephemeral node, 0 for a persistent one."""


class StoreNode(NamedTuple):
    """A node's data and counters, read together."""

    data: bytes
    stat: Stat


class NodeChange(Enum):
    """The kind of change that a watch saw."""

    CREATED = "created"
    SET = "set"
    DELETED = "deleted"
    CHILDREN = "children"
    UNKNOWN = "unknown"
    """The connection was lost for a while and changes may have been missed: read again."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change of one node."""

    change: NodeChange
    path: str


Watch: TypeAlias = "Callable[[WatchEvent], object]"
"""Called on the loop, once, before any read of the session can show the change. It must not block and should
only put an event into a queue.
"""


class Store(Protocol):
    """One session of one broker.

    When the session is closed or expires, its ephemeral nodes and watches are removed, and every later
    request raises SessionExpired.
    """

    @property
    def session_id(self) -> int:
        """Id of the session, as in `Stat.ephemeral_owner` of its ephemeral nodes."""

    async def create(
        self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False
    ) -> str:
        """Return the path of the new node, which has a number appended if sequential."""

    async def get(self, path: str) -> StoreNode:
        """Return data and counters; raises NoNode."""

    async def set(self, path: str, data: bytes, version: int = -1) -> Stat:
        """Replace the data, if the version matches (-1 for any)."""

    async def delete(self, path: str, version: int = -1) -> None:
        """Delete a node without children, if the version matches (-1 for any)."""

    async def exists(self, path: str) -> Stat | None:
        """Return the counters, or None if the node does not exist."""

    async def children(self, path: str) -> tuple[str, ...]:
        """Return the children's names, sorted, without the path."""

    async def multi(self, operations: Sequence[Operation]) -> Results:
        """Carry out all operations or none. Raises the first refusal; its `operation` is the index."""

    async def multi_each(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> tuple[Results | StoreError, ...]:
        """Carry out many independent transactions without waiting between them.

        A refused transaction, or one with an unknown outcome, returns its error, and the others go on. Raises
        only if the session has already ended.
        """

    async def get_each(self, paths: Sequence[str]) -> tuple[StoreNode | None, ...]:
        """Return many nodes, None for missing ones, without waiting between them."""

    async def watch_data(self, path: str, watch: Watch) -> None:
        """Watch the node's next creation, data change or deletion. The node need not exist yet.

        Watch first and read afterwards, so that no change is missed.
        """

    async def watch_children(self, path: str, watch: Watch) -> None:
        """Watch for the next change of the children or deletion of the node. Raises NoNode."""

    def on_expired(self, callback: Callable[[], object]) -> None:
        """Call back once, on the loop, if the session ends other than by `close`."""

    @property
    def in_doubt(self) -> bool:
        """Whether the session may have expired unnoticed, because this process stood still for so long."""

    async def confirm(self) -> None:
        """Return once the server has answered, and the session is not in doubt. Raises StoreError."""

    async def close(self) -> None:
        """End the session. A second call does nothing."""


async def ensure_paths(store: Store, paths: Iterable[str]) -> None:
    """Create the missing paths and their missing parents in one transaction."""
    wanted: dict[str, None] = {}
    for path in paths:
        names = path.strip("/").split("/")
        for end in range(1, len(names) + 1):
            wanted["/" + "/".join(names[:end])] = None
    for answer in await store.multi_each([(Create(path),) for path in wanted]):
        if isinstance(answer, Exception) and not isinstance(answer, NodeExists):
            raise answer
