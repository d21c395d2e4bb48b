"""What every request needs, beside what Kafka's KafkaApis (3.9) asks of it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from restow.cluster.handlers import HANDLERS
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
from restow.cluster.security.guard import ELEMENTS, FREE, WHOLE, Client, GuardedHandlers, guarded
from restow.cluster.security.guard_rules import SPECIAL
from restow.cluster.security.principal import USER, Principal
from restow.wire.batches import TRANSACTIONAL_BIT
from restow.wire.codec import Request, encode_response, parse_response
from restow.wire.messages import RESPONSES, MetadataResponse
from restow.wire.records import Record, build
from tests.acl_questions import GRANTS, VERSIONS, recorded, refusal_in, request_of
from tests.unit.cluster.test_fault_answers import a_context, example_request, values_of

ALICE = Principal(USER, "alice")
NAME = "t"
"""The name of every topic, group, transaction and user in the example requests."""

CLUSTER, TOPIC, GROUP, TXN = "CLUSTER", "TOPIC", "GROUP", "TRANSACTIONAL_ID"
OF_GROUPS = {9, 47}
"""Requests whose answers depend on the offsets of a group, of which there is none here."""
ANSWERED_ANYHOW = {3, 16, 60, 66}
"""Requests that name nothing in particular, or brokers besides: what may not be seen is left out."""
NEEDS: dict[int, list[set[tuple[str, str]]]] = {
    0: [{("WRITE", TOPIC)}],
    1: [{("READ", TOPIC)}],
    2: [{("DESCRIBE", TOPIC)}],
    4: [{("CLUSTER_ACTION", CLUSTER)}],
    5: [{("CLUSTER_ACTION", CLUSTER)}],
    6: [{("CLUSTER_ACTION", CLUSTER)}],
    7: [{("CLUSTER_ACTION", CLUSTER)}],
    8: [{("READ", GROUP), ("READ", TOPIC)}],
    9: [{("DESCRIBE", GROUP)}],
    10: [{("DESCRIBE", GROUP)}],
    11: [{("READ", GROUP)}],
    12: [{("READ", GROUP)}],
    13: [{("READ", GROUP)}],
    14: [{("READ", GROUP)}],
    15: [{("DESCRIBE", GROUP)}],
    19: [{("CREATE", CLUSTER)}, {("CREATE", TOPIC)}],
    20: [{("DELETE", TOPIC)}],
    21: [{("DELETE", TOPIC)}],
    22: [{("WRITE", TXN)}],
    23: [{("CLUSTER_ACTION", CLUSTER)}, {("DESCRIBE", TOPIC)}],
    24: [{("WRITE", TXN), ("WRITE", TOPIC)}],
    25: [{("WRITE", TXN), ("READ", GROUP)}],
    26: [{("WRITE", TXN)}],
    27: [{("CLUSTER_ACTION", CLUSTER)}, {("ALTER", CLUSTER)}],
    28: [{("WRITE", TXN), ("READ", GROUP), ("READ", TOPIC)}],
    29: [{("DESCRIBE", CLUSTER)}],
    30: [{("ALTER", CLUSTER)}],
    31: [{("ALTER", CLUSTER)}],
    32: [{("DESCRIBE_CONFIGS", CLUSTER)}],
    33: [{("ALTER_CONFIGS", CLUSTER)}],
    34: [{("ALTER", CLUSTER)}],
    35: [{("DESCRIBE", CLUSTER)}],
    37: [{("ALTER", TOPIC)}],
    42: [{("DELETE", GROUP)}],
    43: [{("ALTER", CLUSTER)}],
    44: [{("ALTER_CONFIGS", CLUSTER)}],
    45: [{("ALTER", CLUSTER)}],
    46: [{("DESCRIBE", CLUSTER)}],
    47: [{("DELETE", GROUP)}],
    48: [{("DESCRIBE_CONFIGS", CLUSTER)}],
    49: [{("ALTER_CONFIGS", CLUSTER)}],
    50: [{("DESCRIBE", CLUSTER)}],
    51: [{("ALTER", CLUSTER)}],
    56: [{("CLUSTER_ACTION", CLUSTER)}],
    61: [{("READ", TOPIC)}],
    65: [{("DESCRIBE", TXN)}],
    67: [{("CLUSTER_ACTION", CLUSTER)}],
    68: [{("READ", GROUP)}],
    69: [{("DESCRIBE", GROUP)}],
    75: [{("DESCRIBE", TOPIC)}],
}
"""By key, the permissions that suffice, each of them needed. Fetches are those of consumers here."""
BETWEEN_BROKERS = {(24, 4), (24, 5)}
"""Versions of AddPartitionsToTxn that only brokers send: they act for the cluster."""


@dataclass(slots=True)
class Reached:
    """The requests that reached their handlers."""

    requests: list[Request] = field(default_factory=list)

    async def handle(self, request: Request, _: Any) -> Any:
        self.requests.append(request)
        if request.api_key == 3:
            broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="a", port=1)
            return MetadataResponse(brokers=[broker], topics=[], cluster_id="c", controller_id=1)
        return RESPONSES[request.api_key]()


def rules_of(*granted: tuple[str, str], permission: str = "ALLOW") -> AclRules:
    rules = AclRules()
    acls: dict[AclPattern, frozenset[AclEntry]] = {}
    for operation, resource in granted:
        name = CLUSTER_NAME if resource == CLUSTER else NAME
        pattern = AclPattern(AclResource[resource], name, AclPatternType.LITERAL)
        entry = AclEntry(str(ALICE), "*", AclOperation[operation], AclPermission[permission])
        acls[pattern] = acls.get(pattern, frozenset()) | {entry}
    rules.set(acls)
    return rules


def context_of(rules: AclRules, *, exists: bool) -> Client:
    context: Any = SimpleNamespace(**vars(a_context()), principal=ALICE, host="127.0.0.1")
    if not exists:
        context.broker.metadata.topics.clear()
    return Client(rules, context)


def ask(request: Request, rules: AclRules, *, exists: bool = True) -> tuple[Reached, Any]:
    """Return what reached the handler, and the answer as a client would read it."""
    reached = Reached()
    answer: Any = asyncio.run(guarded(context_of(rules, exists=exists), request, reached.handle))
    payload = b"".join(map(bytes, encode_response(request, answer)))
    return reached, parse_response(request.api_key, request.api_version, payload).body


def test_every_handler_has_a_rule() -> None:
    assert WHOLE.keys() | ELEMENTS.keys() | SPECIAL.keys() | FREE == HANDLERS.keys()
    assert not SPECIAL.keys() & ELEMENTS.keys()
    assert set(map(str, VERSIONS)) == recorded().keys()
    assert NEEDS.keys() | ANSWERED_ANYHOW | FREE == HANDLERS.keys()


@pytest.mark.parametrize("key", sorted(NEEDS))
def test_request_is_refused_without_permissions(key: int) -> None:
    for version in HANDLERS[key].versions:
        reached, answer = ask(example_request(key, version), AclRules())
        assert not reached.requests, version
        codes = set(values_of(answer, version, {"error_code", "partition_error_code"}))
        assert codes - {0} <= {29, 30, 31, 53}, (version, answer)
        assert codes - {0}, (version, answer)


@pytest.mark.parametrize("key", sorted(NEEDS))
def test_request_needs_what_kafka_asks_for(key: int) -> None:
    for version in HANDLERS[key].versions:
        alternatives = NEEDS[key]
        if (key, version) in BETWEEN_BROKERS:
            alternatives = [{("CLUSTER_ACTION", CLUSTER)}]
        for needed in alternatives:
            request = example_request(key, version)
            reached, _ = ask(request, rules_of(*needed))
            assert reached.requests, (version, needed)
            for left_out in needed:
                reached, _ = ask(example_request(key, version), rules_of(*needed - {left_out}))
                assert not reached.requests, (version, left_out)


@pytest.mark.parametrize("key", sorted(ANSWERED_ANYHOW))
def test_what_may_not_be_seen_is_left_out(key: int) -> None:
    for version in HANDLERS[key].versions:
        request = example_request(key, version)
        reached, answer = ask(request, AclRules())
        assert len(reached.requests) == 1
        assert not list(values_of(answer, version, {"group_id", "transactional_id"}))
        if key == 3:
            assert not reached.requests[0].body.topics
            expected = [29] if version < 12 else []
            assert [each.error_code for each in answer.topics if each.name] == expected or version >= 12


def test_transactional_batch_needs_the_id() -> None:
    records = [Record(0, 1, b"", b"")]
    plain, marked = build(records), build(records, attributes=TRANSACTIONAL_BIT)
    for given, needs_id in ((plain, False), (marked, True), (plain + marked, True), (bytes(70), False)):
        request = example_request(0, 9)
        request.body.topic_data[0].partition_data[0].records = given
        reached, answer = ask(request, rules_of(("WRITE", TOPIC)))
        assert bool(reached.requests) is not needs_id
        assert 53 in set(values_of(answer, 9, {"error_code"})) or not needs_id
        assert ask(request, rules_of(("WRITE", TOPIC), ("WRITE", TXN)))[0].requests


def test_deletion_tells_only_those_who_may_describe_a_topic_whether_it_exists() -> None:
    by_id = example_request(20, 6)
    by_id.body.topics[0].name = by_id.body.topic_names = None
    for request, code in ((example_request(20, 5), 29), (by_id, 100)):
        for granted, expected in (((), code), ((("DESCRIBE", TOPIC),), 29)):
            reached, answer = ask(request, rules_of(*granted))
            assert not reached.requests
            assert {each.error_code for each in answer.responses} == {expected}


def test_offsets_of_topics_that_may_not_be_read_are_not_deleted() -> None:
    reached, answer = ask(example_request(47, 0), rules_of(("DELETE", GROUP)))
    assert [each.body.topics for each in reached.requests] == [[]]
    assert [each.partitions[0].error_code for each in answer.topics] == [29]


def asked_by(user: str, key: int) -> str:
    """Return how a user of `acl_questions` is refused."""
    granted = [(AclOperation(number).name, kind) for kind, number in GRANTS[user]]
    request = request_of(key)
    _, answer = ask(request, rules_of(*granted), exists=False)
    return refusal_in(answer, request.api_version)


@pytest.mark.parametrize("key", sorted(VERSIONS.keys() - OF_GROUPS))
def test_requests_are_refused_as_kafka_has_refused_them(key: int) -> None:
    assert {user: asked_by(user, key) for user in GRANTS} == recorded()[str(key)]


def test_consumer_reads_topics_and_follower_acts_for_the_cluster() -> None:
    request = example_request(1, 12)
    request.body.replica_id = -1
    assert ask(request, rules_of(("READ", TOPIC)))[0].requests
    assert not ask(request, rules_of(("CLUSTER_ACTION", CLUSTER)))[0].requests
    request.body.replica_id = 1
    assert not ask(request, rules_of(("READ", TOPIC)))[0].requests


def test_idempotent_producer_may_write_somewhere() -> None:
    request = example_request(22, 4)
    request.body.transactional_id = None
    assert not ask(request, AclRules())[0].requests
    assert not ask(request, rules_of(("READ", TOPIC)))[0].requests
    assert ask(request, rules_of(("WRITE", TOPIC)))[0].requests
    assert ask(request, rules_of(("IDEMPOTENT_WRITE", CLUSTER)))[0].requests


def test_configs_of_topics_need_the_topic() -> None:
    for key, operation in ((32, "DESCRIBE_CONFIGS"), (33, "ALTER_CONFIGS"), (44, "ALTER_CONFIGS")):
        request = example_request(key, HANDLERS[key].versions[-1])
        request.body.resources[0].resource_type = 2
        assert not ask(request, rules_of((operation, CLUSTER)))[0].requests
        assert ask(request, rules_of((operation, TOPIC)))[0].requests


def test_allowed_elements_are_handled_beside_refused_ones() -> None:
    request = example_request(8, 8)
    other = type(request.body.topics[0])(name="other", partitions=request.body.topics[0].partitions)
    request.body.topics.append(other)
    reached, answer = ask(request, rules_of(("READ", GROUP), ("READ", TOPIC)))
    assert [each.name for each in reached.requests[0].body.topics] == [NAME]
    assert [(each.name, each.partitions[0].error_code) for each in answer.topics] == [("other", 29)]


def test_super_user_needs_no_acls() -> None:
    for key in NEEDS:
        request = example_request(key, HANDLERS[key].versions[-1])
        assert ask(request, AclRules([str(ALICE)]))[0].requests == [request]


def test_guarded_handlers_follow_the_table_behind_them() -> None:
    table = dict(HANDLERS)
    guard = GuardedHandlers(table, AclRules())
    assert set(guard) == set(HANDLERS)
    assert guard[18] is HANDLERS[18]
    changed = HANDLERS[18]._replace(versions=range(1))
    table[18] = changed
    assert guard[18] is changed
