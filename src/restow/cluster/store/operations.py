"""The steps of a transaction. Either all of them happen or none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from restow.cluster.store.errors import InvalidPath
from restow.cluster.store.paths import ROOT, check_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.store.protocol import Stat

ANY_VERSION = -1


@dataclass(frozen=True, slots=True)
class Create:
    """A new node. A sequential one gets ten digits appended that only grow under its parent."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """New data for a node, if it still has that version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """No such node any more, if it still has that version."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """Nothing changes, but the whole transaction is refused unless the node has that version."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Create | Set | Delete | CheckVersion

Result: TypeAlias = "str | Stat | None"
"""A created node's path; a set node's new Stat; nothing for a deleted or checked one."""

Results: TypeAlias = tuple[Result, ...]


def checked(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """The operations, if every path in them is one; so that no server sees one that is not."""
    found = tuple(operations)
    for index, operation in enumerate(found):
        try:
            _check(operation)
        except InvalidPath as error:
            error.operation = index
            raise
    return found


def _check(operation: Operation) -> None:
    if operation.path == ROOT and isinstance(operation, Delete):
        raise InvalidPath("the root cannot be deleted", path=ROOT)
    if operation.path == ROOT and isinstance(operation, Create) and operation.sequential:
        raise InvalidPath("a sequential node needs a name before its number", path=ROOT)
    check_path(operation.path)
