"""ACL operations and resource types, with Kafka's numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

OPERATIONS = {
    3: "READ",
    4: "WRITE",
    5: "CREATE",
    6: "DELETE",
    7: "ALTER",
    8: "DESCRIBE",
    9: "CLUSTER_ACTION",
    10: "DESCRIBE_CONFIGS",
    11: "ALTER_CONFIGS",
    12: "IDEMPOTENT_WRITE",
}

ON_CLUSTERS = frozenset({5, 7, 8, 9, 10, 11, 12})
ON_TOPICS = frozenset({3, 4, 5, 6, 7, 8, 10, 11})
ON_GROUPS = frozenset({3, 6, 8})


def bits(operations: Iterable[int]) -> int:
    """Return a set of operations as a bit field."""
    return sum(1 << each for each in operations)
