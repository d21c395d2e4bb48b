"""What ACLs allow, and which of them filters pick."""

from __future__ import annotations

import pytest

from restow.cluster.security.access import Access
from restow.cluster.security.acls import (
    CLUSTER_NAME,
    AclEntry,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPatternType,
    AclPermission,
    AclResource,
    AclRules,
    InvalidAcl,
)
from restow.cluster.security.authorizer import acl_settings, checked
from restow.cluster.security.broker_doors import Doors
from restow.cluster.security.principal import USER, Principal
from restow.errors import InvalidInput

TOPIC, READ, WRITE = AclResource.TOPIC, AclOperation.READ, AclOperation.WRITE
LITERAL, PREFIXED = AclPatternType.LITERAL, AclPatternType.PREFIXED
HOST = "10.0.0.1"
ALICE = Principal(USER, "alice")


def rules(*acls: tuple[str, str, str], principal: str = "User:alice", host: str = "*") -> AclRules:
    """Return rules from (name, operation, permission); a name ending in … is a prefix."""
    found: dict[AclPattern, frozenset[AclEntry]] = {}
    for name, operation, permission in acls:
        kind = PREFIXED if name.endswith("…") else LITERAL
        pattern = AclPattern(TOPIC, name.removesuffix("…"), kind)
        entry = AclEntry(principal, host, AclOperation[operation], AclPermission[permission])
        found[pattern] = found.get(pattern, frozenset()) | {entry}
    made = AclRules()
    made.set(found)
    return made


def may(found: AclRules, operation: AclOperation = READ, name: str = "orders") -> bool:
    return found.allows(ALICE, HOST, operation, TOPIC, name)


@pytest.mark.parametrize(
    ("found", "allowed"),
    [
        (rules(), False),
        (rules(("orders", "READ", "ALLOW")), True),
        (rules(("orders", "ALL", "ALLOW")), True),
        (rules(("orders", "WRITE", "ALLOW")), False),
        (rules(("order", "READ", "ALLOW")), False),
        (rules(("ord…", "READ", "ALLOW")), True),
        (rules(("*", "READ", "ALLOW")), True),
        (rules(("*…", "READ", "ALLOW")), False),
        (rules(("orders", "READ", "ALLOW"), principal="User:bob"), False),
        (rules(("orders", "READ", "ALLOW"), principal="User:*"), True),
        (rules(("orders", "READ", "ALLOW"), principal="Group:alice"), False),
        (rules(("orders", "READ", "ALLOW"), host=HOST), True),
        (rules(("orders", "READ", "ALLOW"), host="10.0.0.2"), False),
        (rules(("orders", "READ", "ALLOW"), ("*", "READ", "DENY")), False),
        (rules(("orders", "READ", "ALLOW"), ("o…", "ALL", "DENY")), False),
        (rules(("orders", "READ", "ALLOW"), ("orders", "DESCRIBE", "DENY")), True),
    ],
)
def test_decision(found: AclRules, allowed: bool) -> None:
    assert may(found) is allowed


@pytest.mark.parametrize("sufficient", ["READ", "WRITE", "DELETE", "ALTER", "DESCRIBE", "ALL"])
def test_describe_follows_from_other_operations(sufficient: str) -> None:
    assert may(rules(("orders", sufficient, "ALLOW")), AclOperation.DESCRIBE)
    denied = rules(("orders", sufficient, "ALLOW"), ("orders", "DESCRIBE", "DENY"))
    assert not may(denied, AclOperation.DESCRIBE)


@pytest.mark.parametrize("insufficient", ["CREATE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS", "CLUSTER_ACTION"])
def test_describe_does_not_follow_from_others(insufficient: str) -> None:
    assert not may(rules(("orders", insufficient, "ALLOW")), AclOperation.DESCRIBE)


def test_denied_operation_does_not_deny_what_follows_from_it() -> None:
    found = rules(("orders", "DESCRIBE", "ALLOW"), ("orders", "READ", "DENY"))
    assert may(found, AclOperation.DESCRIBE)


def test_configs_are_described_by_those_who_alter_them() -> None:
    assert may(rules(("orders", "ALTER_CONFIGS", "ALLOW")), AclOperation.DESCRIBE_CONFIGS)
    assert not may(rules(("orders", "ALTER", "ALLOW")), AclOperation.DESCRIBE_CONFIGS)


def test_resources_without_acls_are_open_if_told() -> None:
    found = AclRules(allows_without_acls=True)
    assert may(found)
    found.set(rules(("orders", "READ", "ALLOW"), principal="User:bob").acls)
    assert not may(found)
    assert may(found, name="others")


def test_super_user_needs_no_acls_and_no_denial_stops_it() -> None:
    found = AclRules(["User:alice"])
    found.set(rules(("*", "ALL", "DENY"), principal="User:*").acls)
    assert may(found)
    assert found.allows_somewhere(ALICE, HOST, WRITE, TOPIC)


@pytest.mark.parametrize(
    ("found", "allowed"),
    [
        (rules(), False),
        (rules(("orders", "WRITE", "ALLOW")), True),
        (rules(("orders", "READ", "ALLOW")), False),
        (rules(("orders", "WRITE", "ALLOW"), ("orders", "WRITE", "DENY")), False),
        (rules(("orders", "WRITE", "ALLOW"), ("o…", "WRITE", "DENY")), False),
        (rules(("o…", "WRITE", "ALLOW"), ("orders", "WRITE", "DENY")), True),
        (rules(("o…", "WRITE", "ALLOW"), ("or…", "WRITE", "DENY")), True),
        (rules(("or…", "WRITE", "ALLOW"), ("o…", "WRITE", "DENY")), False),
        (rules(("*", "WRITE", "ALLOW"), ("o…", "WRITE", "DENY")), True),
        (rules(("orders", "WRITE", "ALLOW"), ("*", "ALL", "DENY")), False),
    ],
)
def test_decision_about_any_resource(found: AclRules, allowed: bool) -> None:
    assert found.allows_somewhere(ALICE, HOST, WRITE, TOPIC) is allowed


ACL = AclPattern(TOPIC, "orders", LITERAL), AclEntry("User:alice", "*", READ, AclPermission.ALLOW)
ANY = AclFilter(AclResource.ANY, None, AclPatternType.ANY, None, None, AclOperation.ANY, AclPermission.ANY)


@pytest.mark.parametrize(
    ("changed", "picked"),
    [
        ({}, True),
        ({"resource": AclResource.GROUP}, False),
        ({"name": "orders"}, True),
        ({"name": "order"}, False),
        ({"pattern_type": PREFIXED}, False),
        ({"pattern_type": LITERAL, "name": "orders"}, True),
        ({"pattern_type": AclPatternType.MATCH, "name": "orders"}, True),
        ({"pattern_type": AclPatternType.MATCH, "name": "orders-2"}, False),
        ({"principal": "User:bob"}, False),
        ({"host": "10.0.0.1"}, False),
        ({"operation": WRITE}, False),
        ({"operation": READ, "permission": AclPermission.ALLOW, "host": "*"}, True),
        ({"permission": AclPermission.DENY}, False),
    ],
)
def test_filter_picks(changed: dict[str, object], picked: bool) -> None:
    assert ANY._replace(**changed).picks(*ACL) is picked


def test_filter_that_matches_a_name_picks_wildcards_and_prefixes() -> None:
    matching = ANY._replace(pattern_type=AclPatternType.MATCH, name="orders")
    for pattern in (AclPattern(TOPIC, "*", LITERAL), AclPattern(TOPIC, "ord", PREFIXED)):
        assert matching.picks(pattern, ACL[1])
    assert not matching.picks(AclPattern(TOPIC, "x", PREFIXED), ACL[1])


@pytest.mark.parametrize(
    "pattern",
    [
        AclPattern(TOPIC, "", LITERAL),
        AclPattern(TOPIC, "a/b", LITERAL),
        AclPattern(TOPIC, "..", PREFIXED),
        AclPattern(TOPIC, "a", AclPatternType.MATCH),
        AclPattern(AclResource.ANY, "a", LITERAL),
        AclPattern(AclResource.CLUSTER, "another", LITERAL),
    ],
)
def test_pattern_that_cannot_be_stored_is_refused(pattern: AclPattern) -> None:
    with pytest.raises(InvalidAcl):
        checked(pattern)
    checked(AclPattern(AclResource.CLUSTER, CLUSTER_NAME, LITERAL))


AUTHORIZER = {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}


def test_settings_are_read_from_kafkas_configs() -> None:
    assert acl_settings({"super.users": "User:a"}, None) is None
    found = acl_settings({**AUTHORIZER, "super.users": "User:a; User:CN=b,O=c"}, "User:broker")
    assert found is not None
    assert found.super_users == ("User:a", "User:CN=b,O=c", "User:broker")
    assert not found.allows_without_acls


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"authorizer.class.name": "com.example.Mine"}, "must be one of"),
        ({**AUTHORIZER, "super.users": "admin"}, "not TYPE:NAME"),
        ({**AUTHORIZER, "allow.everyone.if.no.acl.found": "maybe"}, "true or false"),
        (AUTHORIZER, "without a login"),
    ],
)
def test_contradictory_settings_are_refused(properties: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        Doors.of(properties, "127.0.0.1", 1)


def test_brokers_without_a_login_may_be_let_in() -> None:
    for more in ({"super.users": "User:ANONYMOUS"}, {"allow.everyone.if.no.acl.found": "true"}):
        assert Doors.of({**AUTHORIZER, **more}, "127.0.0.1", 1).acls is not None


def test_super_users_in_short() -> None:
    access = Access.of_cluster(["SASL_PLAINTEXT"], {"a": "b"}, "secret", ["a", "User:CN=c"])
    acls = Doors.of(access.properties("127.0.0.1", [1]), "127.0.0.1", 1).acls
    assert acls is not None
    assert acls.super_users == ("User:a", "User:CN=c", "User:restow-broker")
