"""Requests by users with one permission each, and how Apache Kafka 4.3.1 has refused them.

Every user is named for the only permission that it has. The requests are about things that do not exist, so
that none of them changes anything; what counts is whether the answer refuses them for want of a permission.
`apache/test_acl_answers.py` asks Kafka again, and writes its answers anew with `RESTOW_RECORD` set.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.unit.cluster.test_fault_answers import example_request, values_of

if TYPE_CHECKING:
    from restow.wire.codec import Request

VECTORS = Path(__file__).parent / "conformance" / "vectors" / "acl_answers.json"
RESOURCES = {"TOPIC": 2, "GROUP": 3, "CLUSTER": 4, "TRANSACTIONAL_ID": 5}
OPERATIONS = {
    "TOPIC": (3, 4, 5, 6, 7, 8, 10, 11),
    "GROUP": (3, 6, 8),
    "CLUSTER": (5, 7, 8, 9, 10, 11, 12),
    "TRANSACTIONAL_ID": (4, 8),
}
ALL = 2
GRANTS = {
    "nothing": (),
    **{f"{kind}-{number}": ((kind, number),) for kind, found in OPERATIONS.items() for number in found},
    "write-both": (("TOPIC", 4), ("TRANSACTIONAL_ID", 4)),
    "read-both": (("TOPIC", 3), ("GROUP", 3)),
    "commit": (("TOPIC", 3), ("GROUP", 3), ("TRANSACTIONAL_ID", 4)),
    "group-and-id": (("GROUP", 3), ("TRANSACTIONAL_ID", 4)),
    "delete-offsets": (("TOPIC", 3), ("GROUP", 6)),
    "everything": tuple((kind, ALL) for kind in RESOURCES),
}
"""Users, and what they may do to everything of a kind."""
VERSIONS = {
    0: 9,
    1: 12,
    2: 6,
    3: 9,
    8: 8,
    9: 7,
    10: 3,
    11: 7,
    12: 4,
    13: 4,
    14: 5,
    15: 5,
    16: 4,
    19: 5,
    20: 5,
    21: 2,
    22: 4,
    23: 4,
    24: 3,
    25: 3,
    26: 3,
    28: 3,
    29: 3,
    32: 4,
    33: 2,
    34: 2,
    35: 4,
    37: 3,
    42: 2,
    43: 2,
    44: 1,
    45: 0,
    46: 0,
    47: 0,
    48: 1,
    49: 1,
    50: 0,
    51: 0,
    60: 0,
    61: 0,
    65: 0,
    66: 0,
    69: 0,
    75: 0,
}
"""Requests that both kinds of brokers take from clients, in a version that names what it is about."""
REFUSALS = {29, 30, 31, 53}


def request_of(key: int) -> Request:
    """Return a request that nobody may carry out by accident."""
    request = example_request(key, VERSIONS[key])
    body = request.body
    if key == 20:
        body.timeout_ms = 60_000
    if key == 29:
        body.resource_type_filter = body.pattern_type_filter = body.operation = body.permission_type = 1
    if key == 1:
        body.session_epoch, body.session_id = -1, 0
    if key == 0:
        for topic in body.topic_data:
            for each in topic.partition_data:
                each.records = None
    if key in (32, 33, 44):
        for each in body.resources:
            each.resource_type = 2
    if key == 3:
        body.allow_auto_topic_creation = False
        body.include_topic_authorized_operations = False
        body.include_cluster_authorized_operations = False
    return request


def refusal_in(answer: Any, version: int) -> str:
    """Return the codes of refusals in an answer."""
    codes = set(values_of(answer, version, {"error_code", "partition_error_code"}))
    return ", ".join(str(int(each)) for each in sorted(codes & REFUSALS)) or "not refused"


def recorded() -> dict[str, dict[str, str]]:
    """Return Kafka's answers, by API key and user."""
    found: dict[str, dict[str, str]] = json.loads(VECTORS.read_text())
    return found
