"""Operations of a transaction. All of them happen or none."""

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
    """Create a node. A sequential name gets ten digits appended, which only grow under its parent."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class Set:
    """Set a node's data, if it has the version."""

    path: str
    data: bytes
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete a node, if it has the version."""

    path: str
    version: int = ANY_VERSION


@dataclass(frozen=True, slots=True)
class CheckVersion:
    """Change nothing, but refuse the whole transaction unless the node has the version."""

    path: str
    version: int = ANY_VERSION


Operation: TypeAlias = Create | Set | Delete | CheckVersion

Result: TypeAlias = "str | Stat | None"
"""The path of a created node, the new Stat of a set one, None for a deleted or checked one."""

Results: TypeAlias = tuple[Result, ...]


def checked(operations: Iterable[Operation]) -> tuple[Operation, ...]:
    """Return the operations if all paths are valid, so that no server gets an invalid one."""
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
