"""Decisions about random ACLs, beside those of Kafka's StandardAuthorizer; and the bytes of znodes."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from restow.cluster.security.acls import (
    CLUSTER_NAME,
    AclEntry,
    AclOperation,
    AclPattern,
    AclPatternType,
    AclPermission,
    AclResource,
    AclRules,
)
from restow.cluster.security.authorizer import encoded_entries
from restow.cluster.security.principal import USER, Principal
from restow.cluster.store.znodes import AclChange
from tests.often import of_many
from tests.oracle.cases import CASES
from tests.seeds import AGAIN, seeded

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway

pytestmark = pytest.mark.jvm

SUPER = "User:root"
PRINCIPALS = ("User:alice", "User:bob", "User:*")
HOSTS = ("127.0.0.1", "127.0.0.2", "*")
NAMES = ("orders", "orders-1", "order", "o", "*")
OPERATIONS = {
    AclResource.TOPIC: (
        *("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE"),
        *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "ALL"),
    ),
    AclResource.GROUP: ("READ", "DELETE", "DESCRIBE", "ALL"),
    AclResource.CLUSTER: (
        *("CREATE", "ALTER", "DESCRIBE", "CLUSTER_ACTION"),
        *("DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE", "ALL"),
    ),
    AclResource.TRANSACTIONAL_ID: ("WRITE", "DESCRIBE", "ALL"),
}
COUNT = of_many(CASES, often=25)
REQUESTS_EACH = 12


class Theirs:
    """Kafka's StandardAuthorizer with some ACLs."""

    def __init__(
        self, gateway: JavaGateway, acls: list[tuple[AclPattern, AclEntry]], *, is_open: bool
    ) -> None:
        self._jvm = jvm = gateway.jvm
        self._gateway = gateway
        self._it = jvm.org.apache.kafka.metadata.authorizer.StandardAuthorizer()
        configs = jvm.java.util.HashMap()
        configs.put("super.users", SUPER)
        configs.put("allow.everyone.if.no.acl.found", str(is_open).lower())
        configs.put("node.id", "1")
        self._it.configure(configs)
        snapshot = jvm.java.util.HashMap()
        for pattern, entry in acls:
            snapshot.put(jvm.org.apache.kafka.common.Uuid.randomUuid(), self._acl(pattern, entry))
        self._it.loadSnapshot(snapshot)
        self._it.completeInitialLoad()

    def _acl(self, pattern: AclPattern, entry: AclEntry) -> Any:
        common, acl = self._jvm.org.apache.kafka.common, self._jvm.org.apache.kafka.common.acl
        return self._jvm.org.apache.kafka.metadata.authorizer.StandardAcl(
            common.resource.ResourceType.valueOf(pattern.resource.name),
            pattern.name,
            common.resource.PatternType.valueOf(pattern.type.name),
            entry.principal,
            entry.host,
            acl.AclOperation.valueOf(entry.operation.name),
            acl.AclPermissionType.valueOf(entry.permission.name),
        )

    def allows(self, user: str, host: str, operation: AclOperation, resource: AclResource, name: str) -> bool:
        common, java = self._jvm.org.apache.kafka.common, self._jvm.java
        pattern = common.resource.ResourcePattern(
            common.resource.ResourceType.valueOf(resource.name),
            name,
            common.resource.PatternType.LITERAL,
        )
        action = self._jvm.org.apache.kafka.server.authorizer.Action(
            common.acl.AclOperation.valueOf(operation.name), pattern, 1, False, False
        )
        answer = self._it.authorize(self._context(user, host), java.util.Collections.singletonList(action))
        return str(answer.get(0)) == "ALLOWED"

    def allows_somewhere(self, user: str, host: str, operation: AclOperation, resource: AclResource) -> bool:
        common, java = self._jvm.org.apache.kafka.common, self._jvm.java
        given = [
            self._context(user, host),
            common.acl.AclOperation.valueOf(operation.name),
            common.resource.ResourceType.valueOf(resource.name),
        ]
        # The gateway does not find the methods that an interface has by default.
        interface = java.lang.Class.forName("org.apache.kafka.server.authorizer.Authorizer")
        (method,) = (each for each in interface.getMethods() if each.getName() == "authorizeByResourceType")
        arguments = self._gateway.new_array(java.lang.Object, len(given))
        for number, each in enumerate(given):
            arguments[number] = each
        return str(method.invoke(self._it, arguments)) == "ALLOWED"

    def _context(self, user: str, host: str) -> Any:
        common, java = self._jvm.org.apache.kafka.common, self._jvm.java
        keys = common.protocol.ApiKeys
        header = common.requests.RequestHeader(keys.METADATA, keys.METADATA.latestVersion(), "c", 1)
        return common.requests.RequestContext(
            header,
            "connection",
            java.net.InetAddress.getByName(host),
            common.security.auth.KafkaPrincipal("User", user),
            common.network.ListenerName("PLAINTEXT"),
            common.security.auth.SecurityProtocol.PLAINTEXT,
            common.network.ClientInformation.EMPTY,
            False,
        )


def drawn(draw: Random) -> list[tuple[AclPattern, AclEntry]]:
    found = []
    for _ in range(draw.randint(0, 6)):
        resource = draw.choice(list(OPERATIONS))
        kind = draw.choice((AclPatternType.LITERAL, AclPatternType.LITERAL, AclPatternType.PREFIXED))
        name = CLUSTER_NAME if resource is AclResource.CLUSTER else draw.choice(NAMES)
        if resource is AclResource.CLUSTER:
            kind = AclPatternType.LITERAL
        found.append(
            (
                AclPattern(resource, name, kind),
                AclEntry(
                    draw.choice(PRINCIPALS),
                    draw.choice(HOSTS),
                    AclOperation[draw.choice(OPERATIONS[resource])],
                    draw.choice((AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY)),
                ),
            )
        )
    return found


@pytest.mark.parametrize("case", range(COUNT))
def test_decisions_equal_those_of_kafka(gateway: JavaGateway, case: int) -> None:
    draw = Random(seeded(case))
    acls, is_open = list(dict.fromkeys(drawn(draw))), draw.random() < 0.3
    ours = AclRules([SUPER], allows_without_acls=is_open)
    by_pattern: dict[AclPattern, frozenset[AclEntry]] = {}
    for pattern, entry in acls:
        by_pattern[pattern] = by_pattern.get(pattern, frozenset()) | {entry}
    ours.set(by_pattern)
    theirs = Theirs(gateway, acls, is_open=is_open)
    for _ in range(REQUESTS_EACH):
        user, host = draw.choice(("alice", "bob", "carol", "root")), draw.choice(HOSTS[:2])
        resource = draw.choice(list(OPERATIONS))
        operation = AclOperation[draw.choice(OPERATIONS[resource][:-1])]
        name = CLUSTER_NAME if resource is AclResource.CLUSTER else draw.choice((*NAMES[:-1], "else"))
        asked = (user, host, operation, resource, name)
        mine = ours.allows(Principal(USER, user), host, operation, resource, name)
        assert mine == theirs.allows(*asked), (asked, acls, is_open, AGAIN)
        if resource is not AclResource.CLUSTER:
            mine = ours.allows_somewhere(Principal(USER, user), host, operation, resource)
            assert mine == theirs.allows_somewhere(*asked[:-1]), (asked, acls, is_open, AGAIN)


def test_znodes_equal_those_of_kafka(gateway: JavaGateway) -> None:
    jvm, java = gateway.jvm, gateway.jvm.java

    def singleton(name: str) -> Any:
        return java.lang.Class.forName(f"{name}$").getField("MODULE$").get(None)

    common = jvm.org.apache.kafka.common
    scala_set = singleton("scala.jdk.javaapi.CollectionConverters")
    for operation in AclOperation:
        if operation in (AclOperation.ANY, AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS):
            continue
        for permission in (AclPermission.ALLOW, AclPermission.DENY):
            entry = AclEntry('User:a"ü', "127.0.0.1", operation, permission)
            theirs = jvm.org.apache.kafka.security.authorizer.AclEntry(
                common.acl.AccessControlEntry(
                    entry.principal,
                    entry.host,
                    common.acl.AclOperation.valueOf(operation.name),
                    common.acl.AclPermissionType.valueOf(permission.name),
                )
            )
            java_set = java.util.HashSet()
            java_set.add(theirs)
            listed = scala_set.asScala(java_set).toSet()
            assert encoded_entries([entry]) == bytes(singleton("kafka.zk.ResourceZNode").encode(listed))
    for kind in ("LITERAL", "PREFIXED"):
        pattern = common.resource.ResourcePattern(
            common.resource.ResourceType.TRANSACTIONAL_ID, 'n "ü', common.resource.PatternType.valueOf(kind)
        )
        store = singleton("kafka.zk.ZkAclStore").apply(common.resource.PatternType.valueOf(kind))
        change = AclChange("TRANSACTIONAL_ID", 'n "ü', is_prefixed=kind == "PREFIXED")
        note = store.changeStore().createChangeNode(pattern)
        assert change.encode() == bytes(note.bytes())
        assert change.prefix == note.path()
