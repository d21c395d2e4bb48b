"""The ACLs in the store, where Kafka's AclAuthorizer keeps them: read, followed, written on request."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.security.acls import (
    CLUSTER_NAME,
    AclEntry,
    AclOperation,
    AclPattern,
    AclPatternType,
    AclPermission,
    AclResource,
    AclRules,
    InvalidAcl,
)
from restow.cluster.store import (
    BadVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Set,
    UnreadableNode,
    ensure_paths,
)
from restow.cluster.store.znodes import AclChange, AclZNode
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from restow.cluster.security.acls import AclFilter
    from restow.cluster.store import Operation, Store, WatchEvent
    from restow.cluster.tasks import Tasks

log = logging.getLogger(__name__)

AUTHORIZERS = (
    "kafka.security.authorizer.AclAuthorizer",
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
)
_NOTES_KEPT = 100
_TYPES = {
    name: AclResource[_word]
    for name, _word in zip(
        AclZNode.TYPES,
        ("TOPIC", "GROUP", "CLUSTER", "TRANSACTIONAL_ID", "DELEGATION_TOKEN", "USER"),
        strict=True,
    )
}
_TYPE_NAMES = {resource: name for name, resource in _TYPES.items()}
_ROOTS = {AclPatternType.LITERAL: AclZNode.LITERAL, AclPatternType.PREFIXED: AclZNode.PREFIXED}


def _as_word(name: str) -> str:
    """Return Kafka's spelling: DescribeConfigs for DESCRIBE_CONFIGS."""
    return "".join(part.capitalize() for part in name.split("_"))


_OPERATIONS = {_as_word(each.name): each for each in AclOperation}
_PERMISSIONS = {_as_word(each.name): each for each in AclPermission}


@frozen
class AclSettings:
    """The settings of the authorizer: its super users, and what it allows without ACLs."""

    super_users: tuple[str, ...]
    allows_without_acls: bool

    def rules(self) -> AclRules:
        """Return rules without any ACLs yet."""
        return AclRules(self.super_users, allows_without_acls=self.allows_without_acls)


def acl_settings(properties: Mapping[str, str], brokers: str | None) -> AclSettings | None:
    """Return what the configs ask for; None without an authorizer. `brokers` is the principal of brokers that
    log in: they need no ACLs.
    """
    name = properties.get("authorizer.class.name", "").strip()
    if not name:
        return None
    if name not in AUTHORIZERS:
        raise InvalidInput(f"authorizer.class.name must be one of {', '.join(AUTHORIZERS)}, not {name!r}")
    users = [each.strip() for each in properties.get("super.users", "").split(";") if each.strip()]
    for each in users:
        if not all(each.partition(":")[::2]):
            raise InvalidInput(f"super.users: {each!r} is not TYPE:NAME, like User:admin; separate them by ;")
    config = "allow.everyone.if.no.acl.found"
    allows = properties.get(config, "false").strip().lower()
    if allows not in ("true", "false"):
        raise InvalidInput(f"{config} must be true or false, not {allows!r}")
    super_users = (*users, *(() if brokers is None else (brokers,)))
    return AclSettings(super_users=super_users, allows_without_acls=allows == "true")


class AclStore:
    """Keeps one broker's rules equal to the store, and writes changes."""

    def __init__(self, rules: AclRules, store: Store, tasks: Tasks) -> None:
        self.rules = rules
        self._store = store
        self._tasks = tasks

    async def start(self) -> None:
        """Create what is missing, read everything, and follow changes."""
        roots = (AclZNode.LITERAL, AclZNode.PREFIXED)
        paths = [f"{root}/{kind}" for root in roots for kind in AclZNode.TYPES]
        await ensure_paths(self._store, [*paths, AclChange.LITERAL, AclChange.EXTENDED])
        await self._follow()

    async def create(self, acls: Iterable[tuple[AclPattern, AclEntry]]) -> None:
        """Add ACLs. Raises StoreError."""
        by_pattern: dict[AclPattern, frozenset[AclEntry]] = {}
        for pattern, entry in acls:
            by_pattern[pattern] = by_pattern.get(pattern, frozenset()) | {entry}
        for pattern, new in by_pattern.items():
            await self._alter(pattern, new.union)
        await self._read()

    async def delete(self, which: AclFilter) -> list[tuple[AclPattern, AclEntry]]:
        """Delete the ACLs that a filter picks, and return them."""
        gone: list[tuple[AclPattern, AclEntry]] = []
        for pattern, entries in tuple(self.rules.acls.items()):
            if any(which.picks(pattern, each) for each in entries):
                removed: set[AclEntry] = set()

                def without(
                    entries: frozenset[AclEntry],
                    pattern: AclPattern = pattern,
                    removed: set[AclEntry] = removed,
                ) -> frozenset[AclEntry]:
                    removed.clear()
                    removed.update(each for each in entries if which.picks(pattern, each))
                    return entries - removed

                await self._alter(pattern, without)
                gone += ((pattern, each) for each in sorted(removed))
        await self._read()
        return gone

    async def _alter(
        self, pattern: AclPattern, change: Callable[[frozenset[AclEntry]], frozenset[AclEntry]]
    ) -> None:
        """Replace a pattern's entries by the result of `change`, and leave a note for all brokers."""
        path = _path(pattern)
        is_prefixed = pattern.type is AclPatternType.PREFIXED
        note = AclChange(pattern.resource.name, pattern.name, is_prefixed)
        while True:
            (node,) = await self._store.get_each([path])
            before = frozenset() if node is None else _entries(node.data, path)
            after = change(before)
            if after == before:
                return
            write: Operation
            if node is None:
                write = Create(path, encoded_entries(after))
            elif after:
                write = Set(path, encoded_entries(after), node.stat.version)
            else:
                write = Delete(path, node.stat.version)
            try:
                await self._store.multi([write, Create(note.prefix, note.encode(), sequential=True)])
            except (BadVersion, NodeExists, NoNode):
                continue
            await self._tidy_up()
            return

    async def _tidy_up(self) -> None:
        for parent in (AclChange.LITERAL, AclChange.EXTENDED):
            old = sorted(await self._store.children(parent))[:-_NOTES_KEPT]
            if old:
                await self._store.multi_each([(Delete(f"{parent}/{name}"),) for name in old])

    def _noted(self, _: WatchEvent) -> None:
        self._tasks.start(self._follow(), "changes of ACLs")

    async def _follow(self) -> None:
        await self._store.watch_children(AclChange.LITERAL, self._noted)
        await self._store.watch_children(AclChange.EXTENDED, self._noted)
        await self._read()

    async def _read(self) -> None:
        patterns = []
        for kind, root in _ROOTS.items():
            for name, resource in _TYPES.items():
                children = await self._store.children(f"{root}/{name}")
                patterns += [AclPattern(resource, each, kind) for each in children]
        paths = [_path(each) for each in patterns]
        nodes = await self._store.get_each(paths)
        self.rules.set(
            {
                pattern: _entries(node.data, path)
                for pattern, path, node in zip(patterns, paths, nodes, strict=True)
                if node is not None
            }
        )


def checked(pattern: AclPattern) -> AclPattern:
    """Return the pattern if it can be stored. Raises InvalidAcl."""
    if pattern.type not in _ROOTS or pattern.resource not in _TYPE_NAMES:
        raise InvalidAcl("the pattern of an ACL must be LITERAL or PREFIXED, on a kind of resource")
    if not pattern.name or "/" in pattern.name or pattern.name in (".", ".."):
        raise InvalidAcl(f"an ACL cannot be about the name {pattern.name!r}: there is no znode for it")
    if pattern.resource is AclResource.CLUSTER and pattern.name not in (CLUSTER_NAME, "*"):
        raise InvalidAcl(f"the only name of a cluster is {CLUSTER_NAME}")
    return pattern


def _path(pattern: AclPattern) -> str:
    return f"{_ROOTS[pattern.type]}/{_TYPE_NAMES[pattern.resource]}/{pattern.name}"


def encoded_entries(entries: Iterable[AclEntry]) -> bytes:
    """Return what the znode of a pattern holds."""
    return AclZNode(
        tuple(
            (each.principal, _as_word(each.permission.name), _as_word(each.operation.name), each.host)
            for each in sorted(entries)
        )
    ).encode()


def _entries(data: bytes, path: str) -> frozenset[AclEntry]:
    """Return the entries in a znode. Unreadable ones deny everything: ignoring them could let somebody in."""
    try:
        return frozenset(
            AclEntry(principal, host, _OPERATIONS[operation], _PERMISSIONS[permission])
            for principal, permission, operation, host in AclZNode.decode(data, path).entries
        )
    except (UnreadableNode, KeyError) as error:
        log.warning("the ACLs in %s cannot be read, so nobody may use the resource: %s", path, error)
        return frozenset({AclEntry("User:*", "*", AclOperation.ALL, AclPermission.DENY)})
