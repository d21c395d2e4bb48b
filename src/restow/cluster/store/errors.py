"""Errors of a store.

RestowError
└── StoreError
    ├── NodeError                one node does not allow the change
    │   ├── NoNode                   the node, or a new node's parent, does not exist
    │   ├── NodeExists               the node already exists
    │   ├── BadVersion               the node changed since it was read
    │   ├── NotEmpty                 the node has children and cannot be deleted
    │   └── NoChildrenForEphemerals  the parent is ephemeral
    ├── InvalidPath              not a path, or one that does not allow the change
    ├── TooLarge                 more bytes than the server accepts in one request
    ├── SessionExpired           the session has ended; its ephemeral nodes are gone
    └── StoreUnavailable         the store cannot be reached or cannot write; whether the change
                                 was made is not known
"""

from __future__ import annotations

from typing import ClassVar

from restow.errors import RestowError


class StoreError(RestowError):
    """Base of all store errors. `path` names the node."""

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path
        self.operation: int | None = None
        """Index of the refused operation in its transaction."""


class NodeError(StoreError):
    """A change that one node does not allow."""

    reason: ClassVar[str]

    def __init__(self, path: str) -> None:
        super().__init__(self.reason.format(path), path=path)


class NoNode(NodeError):
    """The node does not exist; for a new node, its parent does not."""

    reason = "there is no node {}"


class NodeExists(NodeError):
    """A node with that path already exists."""

    reason = "the node {} exists already"


class BadVersion(NodeError):
    """The node does not have the expected version."""

    reason = "the node {} has another version than expected: read it again"


class NotEmpty(NodeError):
    """A node with children cannot be deleted."""

    reason = "the node {} has children: delete them first"


class NoChildrenForEphemerals(NodeError):
    """An ephemeral node cannot be a parent."""

    reason = "the parent of {} is ephemeral and can have no children"


class InvalidPath(StoreError, ValueError):
    """Not a path of a node."""


class TooLarge(StoreError, ValueError):
    """More bytes than a server accepts in one request."""


class UnreadableNode(StoreError):
    """A node's data is not in Kafka's format. The reader logs it and goes on."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"the data of {path} cannot be understood: {reason}", path=path)


class SessionExpired(StoreError):
    """The session has expired or was closed. Its ephemeral nodes are gone."""


class StoreUnavailable(StoreError):
    """The store is unreachable or cannot write. The outcome of a pending change is unknown."""
