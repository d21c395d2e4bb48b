"""ACLs, and what they allow, as Kafka's AclAuthorizer decides.

A denial counts more than any number of permissions. The right to read, write, delete or alter a resource
includes the right to describe it, and the right to alter configs the right to describe them.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.cluster.security.principal import Principal

CLUSTER_NAME = "kafka-cluster"
WILDCARD = "*"
ANY_USER = "User:*"
_SOME_NAME = "hardcode"
"""The name with which Kafka asks whether somebody may use resources of any name."""


class AclResource(IntEnum):
    """Kinds of resources, with Kafka's numbers."""

    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclPatternType(IntEnum):
    """What a pattern's name means. ANY and MATCH are for filters only."""

    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Operations, with Kafka's numbers."""

    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14


class AclPermission(IntEnum):
    """Whether an ACL allows or denies."""

    ANY = 1
    DENY = 2
    ALLOW = 3


_IMPLIED_BY = {
    AclOperation.DESCRIBE: frozenset(
        {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER}
    ),
    AclOperation.DESCRIBE_CONFIGS: frozenset({AclOperation.ALTER_CONFIGS}),
}


class InvalidAcl(RestowError):
    """An ACL or filter that cannot be."""


class AclPattern(NamedTuple):
    """Which resources an ACL is about."""

    resource: AclResource
    name: str
    type: AclPatternType

    def covers(self, name: str) -> bool:
        """Return whether a resource of that name is among them."""
        if self.type is AclPatternType.PREFIXED:
            return name.startswith(self.name)
        return self.name in (name, WILDCARD)


class AclEntry(NamedTuple):
    """Allows or denies a principal an operation, from one host or from all."""

    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    def is_about(self, principal: str, host: str, operations: Iterable[AclOperation]) -> bool:
        """Return whether the entry is about one of these operations of the client."""
        return (
            self.principal in (principal, ANY_USER)
            and self.host in (host, WILDCARD)
            and (self.operation is AclOperation.ALL or self.operation in operations)
        )


class AclFilter(NamedTuple):
    """Which ACLs to describe or delete; None matches all."""

    resource: AclResource
    name: str | None
    pattern_type: AclPatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission: AclPermission

    def picks(self, pattern: AclPattern, entry: AclEntry) -> bool:
        """Return whether the filter is about this ACL."""
        return (
            self.resource in (AclResource.ANY, pattern.resource)
            and self._picks_name(pattern)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (AclPermission.ANY, entry.permission)
        )

    def _picks_name(self, pattern: AclPattern) -> bool:
        if self.pattern_type is AclPatternType.MATCH:
            return self.name is None or pattern.covers(self.name)
        if self.pattern_type not in (AclPatternType.ANY, pattern.type):
            return False
        return self.name in (None, pattern.name)


class AclRules:
    """All ACLs of a cluster, and who needs none."""

    def __init__(self, super_users: Iterable[str] = (), *, allows_without_acls: bool = False) -> None:
        """`allows_without_acls` lets everybody use resources that no ACL is about."""
        self._super_users = frozenset(super_users)
        self._allows_without_acls = allows_without_acls
        self._by_name: dict[tuple[AclResource, str], tuple[AclEntry, ...]] = {}
        self._by_prefix: dict[AclResource, tuple[tuple[str, tuple[AclEntry, ...]], ...]] = {}
        self.acls: Mapping[AclPattern, frozenset[AclEntry]] = {}

    def set(self, acls: Mapping[AclPattern, frozenset[AclEntry]]) -> None:
        """Replace all ACLs."""
        self.acls = acls
        self._by_name = {
            (pattern.resource, pattern.name): tuple(entries)
            for pattern, entries in acls.items()
            if pattern.type is AclPatternType.LITERAL
        }
        prefixes: dict[AclResource, list[tuple[str, tuple[AclEntry, ...]]]] = {}
        for pattern, entries in acls.items():
            if pattern.type is AclPatternType.PREFIXED:
                prefixes.setdefault(pattern.resource, []).append((pattern.name, tuple(entries)))
        self._by_prefix = {resource: tuple(found) for resource, found in prefixes.items()}

    def allows(
        self, principal: Principal, host: str, operation: AclOperation, resource: AclResource, name: str
    ) -> bool:
        """Return whether the client may do that."""
        who = str(principal)
        if who in self._super_users:
            return True
        entries = [
            *self._by_name.get((resource, name), ()),
            *(self._by_name.get((resource, WILDCARD), ()) if name != WILDCARD else ()),
        ]
        for prefix, found in self._by_prefix.get(resource, ()):
            if name.startswith(prefix):
                entries += found
        if not entries:
            return self._allows_without_acls
        if any(
            each.permission is AclPermission.DENY and each.is_about(who, host, (operation,))
            for each in entries
        ):
            return False
        sufficient = {operation, *_IMPLIED_BY.get(operation, ())}
        return any(
            each.permission is AclPermission.ALLOW and each.is_about(who, host, sufficient)
            for each in entries
        )

    def allows_somewhere(
        self, principal: Principal, host: str, operation: AclOperation, resource: AclResource
    ) -> bool:
        """Return whether the client may do that to some resource, whatever its name."""
        if self.allows(principal, host, operation, resource, _SOME_NAME):
            return True
        who = str(principal)
        allowed, denied = [], []
        for pattern, entries in self.acls.items():
            if pattern.resource is resource:
                about = [each for each in entries if each.is_about(who, host, (operation,))]
                if any(each.permission is AclPermission.DENY for each in about):
                    denied.append(pattern)
                if any(each.permission is AclPermission.ALLOW for each in about):
                    allowed.append(pattern)
        if any(each.name == WILDCARD and each.type is AclPatternType.LITERAL for each in denied):
            return False
        return any(not any(_hides(no, yes) for no in denied) for yes in allowed)


def _hides(denied: AclPattern, allowed: AclPattern) -> bool:
    """Return whether nothing is left of what is allowed."""
    if allowed.type is AclPatternType.LITERAL and allowed.name == WILDCARD:
        return False
    if denied.type is AclPatternType.PREFIXED:
        return allowed.name.startswith(denied.name)
    return allowed.type is AclPatternType.LITERAL and allowed.name == denied.name
