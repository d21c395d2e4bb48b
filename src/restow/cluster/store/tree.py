"""The embedded store's nodes in memory, with ZooKeeper's rules, without sessions or timing.

Transactions gather until `settle` makes them final or `roll_back` undoes them all, so that several share one
disk write.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.cluster.store.errors import (
    BadVersion,
    NoChildrenForEphemerals,
    NodeExists,
    NoNode,
    NotEmpty,
    StoreError,
)
from restow.cluster.store.operations import ANY_VERSION, Create, Delete, Operation, Result, Results, Set
from restow.cluster.store.paths import ROOT, check_path, parent_of
from restow.cluster.store.protocol import NodeChange, Stat, StoreNode, WatchEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_NO_OWNER = 0
_LARGEST_NUMBER = 2**31


class Row(NamedTuple):
    """A node as it is on disk."""

    path: str
    data: bytes
    version: int
    created: int
    czxid: int
    mzxid: int


class _TreeNode:
    """A node that changes in place. `created` counts all children ever, to number the next one."""

    __slots__ = ("children", "created", "czxid", "data", "mzxid", "owner", "version")

    def __init__(self, data: bytes, zxid: int, owner: int = _NO_OWNER) -> None:
        self.data = data
        self.version = 0
        self.created = 0
        self.czxid = zxid
        self.mzxid = zxid
        self.owner = owner
        self.children: dict[str, None] = {}

    def stat(self) -> Stat:
        changes = 2 * self.created - len(self.children)
        return Stat(self.version, changes, self.czxid, self.mzxid, self.owner)


_Undo: TypeAlias = "Callable[[], None]"


class Tree:
    """All nodes by path, the number of the last transaction, and the unsettled changes."""

    def __init__(self, rows: Iterable[Row] = (), *, zxid: int = 0) -> None:
        self.zxid = zxid
        self._nodes = {ROOT: _TreeNode(b"", 0)}
        self._ephemerals: dict[int, dict[str, None]] = {}
        self._undo: list[_Undo] = []
        self._touched: dict[str, None] = {}
        for row in sorted(rows):
            self._load(row)

    def _load(self, row: Row) -> None:
        """Insert a node from disk. In sorted order a parent comes before its children."""
        node = _TreeNode(row.data, row.czxid)
        node.version, node.created, node.mzxid = row.version, row.created, row.mzxid
        if row.path == ROOT:
            node.children = self._nodes[ROOT].children
        else:
            parent, _, name = row.path.rpartition("/")
            self._nodes[parent or ROOT].children[name] = None
        self._nodes[row.path] = node

    # Reading

    def get(self, path: str) -> StoreNode:
        """Return data and counters."""
        node = self._node(path)
        return StoreNode(node.data, node.stat())

    def find(self, path: str) -> StoreNode | None:
        """Return data and counters, or None if the node does not exist."""
        node = self._nodes.get(check_path(path))
        return None if node is None else StoreNode(node.data, node.stat())

    def children(self, path: str) -> tuple[str, ...]:
        """Return the children's names, sorted."""
        return tuple(sorted(self._node(path).children))

    def owners(self) -> set[int]:
        """Return the sessions that have ephemeral nodes."""
        return set(self._ephemerals)

    def _node(self, path: str) -> _TreeNode:
        node = self._nodes.get(path)
        if node is None:
            raise NoNode(check_path(path))
        return node

    # Changing

    def transact(
        self, operations: Sequence[Operation], session_id: int
    ) -> tuple[Results, tuple[WatchEvent, ...]]:
        """Carry out all (checked) operations and return the watch events, or raise and change nothing."""
        mark = len(self._undo)
        zxid = self.zxid + 1
        results: list[Result] = []
        events: list[WatchEvent] = []
        for index, operation in enumerate(operations):
            try:
                results.append(self._carry_out(operation, zxid, session_id, events))
            except StoreError as error:
                self._undo_to(mark)
                error.operation = index
                raise
        self.zxid = zxid
        return tuple(results), tuple(events)

    def delete_ephemerals(self, session_id: int) -> tuple[WatchEvent, ...]:
        """Delete the session's ephemeral nodes."""
        paths = tuple(self._ephemerals.get(session_id, ()))
        if not paths:
            return ()
        return self.transact([Delete(path) for path in paths], session_id)[1]

    def _carry_out(
        self, operation: Operation, zxid: int, session_id: int, events: list[WatchEvent]
    ) -> Result:
        if isinstance(operation, Create):
            return self._create(operation, zxid, session_id, events)
        path = operation.path
        node = self._node(path)
        if operation.version not in {ANY_VERSION, node.version}:
            raise BadVersion(path)
        if isinstance(operation, Set):
            return self._set(operation, node, zxid, events)
        if isinstance(operation, Delete):
            self._delete(path, node, events)
        return None

    def _create(self, operation: Create, zxid: int, session_id: int, events: list[WatchEvent]) -> str:
        path = operation.path
        if path == ROOT:
            raise NodeExists(ROOT)
        above = parent_of(path)
        parent = self._nodes.get(above)
        if parent is None:
            raise NoNode(above)
        if operation.sequential:
            path = f"{path}{parent.created % _LARGEST_NUMBER:010d}"
        if path in self._nodes:
            raise NodeExists(path)
        if parent.owner:
            raise NoChildrenForEphemerals(path)
        owner = session_id if operation.ephemeral else _NO_OWNER
        self._nodes[path] = _TreeNode(operation.data, zxid, owner)
        self._link(path, above, parent, owner)
        parent.created += 1
        events += (WatchEvent(NodeChange.CREATED, path), WatchEvent(NodeChange.CHILDREN, above))

        def undo() -> None:
            parent.created -= 1
            del self._nodes[path]
            self._unlink(path, parent, owner)

        self._undo.append(undo)
        return path

    def _set(self, operation: Set, node: _TreeNode, zxid: int, events: list[WatchEvent]) -> Stat:
        before = node.data, node.version, node.mzxid
        node.data, node.version, node.mzxid = operation.data, node.version + 1, zxid
        self._touched[operation.path] = None
        events.append(WatchEvent(NodeChange.SET, operation.path))

        def undo() -> None:
            node.data, node.version, node.mzxid = before

        self._undo.append(undo)
        return node.stat()

    def _delete(self, path: str, node: _TreeNode, events: list[WatchEvent]) -> None:
        if node.children:
            raise NotEmpty(path)
        above = parent_of(path)
        parent = self._nodes[above]
        del self._nodes[path]
        self._unlink(path, parent, node.owner)
        self._touched[path] = None
        events += (WatchEvent(NodeChange.DELETED, path), WatchEvent(NodeChange.CHILDREN, above))

        def undo() -> None:
            self._nodes[path] = node
            self._link(path, above, parent, node.owner)

        self._undo.append(undo)

    def _link(self, path: str, above: str, parent: _TreeNode, owner: int) -> None:
        parent.children[path[path.rindex("/") + 1 :]] = None
        if owner:
            self._ephemerals.setdefault(owner, {})[path] = None
        self._touched[path] = None
        self._touched[above] = None

    def _unlink(self, path: str, parent: _TreeNode, owner: int) -> None:
        del parent.children[path[path.rindex("/") + 1 :]]
        if owner:
            of_session = self._ephemerals[owner]
            del of_session[path]
            if not of_session:
                del self._ephemerals[owner]

    # Settling

    def unsettled(self) -> tuple[list[Row], list[str]]:
        """Return the rows to write and the paths to delete on disk. Ephemeral nodes are not stored."""
        kept, gone = [], []
        for path in self._touched:
            node = self._nodes.get(path)
            if node is None or node.owner:
                gone.append(path)
            else:
                kept.append(Row(path, node.data, node.version, node.created, node.czxid, node.mzxid))
        return kept, gone

    def settle(self) -> None:
        """Make all transactions so far final."""
        self._undo.clear()
        self._touched.clear()

    def roll_back(self) -> None:
        """Undo every transaction since the last `settle`. Their numbers stay used."""
        self._undo_to(0)
        self._touched.clear()

    def _undo_to(self, mark: int) -> None:
        while len(self._undo) > mark:
            self._undo.pop()()
