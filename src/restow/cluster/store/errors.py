"""What a store can answer instead of a result.

RestowError
└── StoreError
    ├── NoNode                   the node, or the parent of a new one, is not there
    ├── NodeExists               somebody created it first
    ├── BadVersion               it changed since it was read
    ├── NotEmpty                 it has children and cannot be deleted
    ├── NoChildrenForEphemerals  the parent goes away with its session
    ├── InvalidPath              not a path, or not one that can be changed so
    ├── TooLarge                 more bytes than the server takes in one request
    ├── SessionExpired           this session is over; its ephemeral nodes are gone
    └── StoreUnavailable         the store cannot be reached or cannot write; whether the change
                                 was made is not known
"""

from __future__ import annotations

from restow.errors import RestowError


class StoreError(RestowError):
    """Base of all of them. `path` is the node it is about."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.operation: int | None = None
        """In a transaction: which of its operations was refused, counted from 0."""


class NoNode(StoreError):
    """The node is not there; or, for a new node, its parent."""

    def __init__(self, path: str) -> None:
        super().__init__(f"there is no node {path}", path=path)


class NodeExists(StoreError):
    """A node of that path is there already."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the node {path} exists already", path=path)


class BadVersion(StoreError):
    """The node has another version than the one the change was meant for."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the node {path} has another version than expected: read it again", path=path)


class NotEmpty(StoreError):
    """A node with children cannot be deleted."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the node {path} has children: delete them first", path=path)


class NoChildrenForEphemerals(StoreError):
    """An ephemeral node cannot be a parent."""

    def __init__(self, path: str) -> None:
        super().__init__(f"the parent of {path} is ephemeral and can have no children", path=path)


class InvalidPath(StoreError, ValueError):
    """Not a path of a node."""


class TooLarge(StoreError, ValueError):
    """More bytes than a server takes in one request."""


class UnreadableNode(StoreError):
    """The data of a node is not what Kafka writes there. Whoever meets it reports it and goes on."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the data of {path} cannot be understood: {reason}", path=path)


class SessionExpired(StoreError):
    """The session is over, by expiry or by `close`. Everything ephemeral in it is gone."""


class StoreUnavailable(StoreError):
    """The store cannot be reached, or cannot write. A change in flight may or may not have been made."""
