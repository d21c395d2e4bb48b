"""Parse assignments written by hand: `0:1:2,1:2:0` is two partitions of three replicas each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.errors import InvalidReplicaAssignment
from restow.placement.place import LARGEST_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import Broker, BrokerId

# Leading zeros are harmless, but Python refuses to read numbers of thousands of digits.
_LONGEST_ID = 100


def parse_by_hand(text: str, brokers: Iterable[Broker] | None = None) -> dict[int, list[BrokerId]]:
    """Return replicas by partition, counted from 0; the first is the preferred leader.

    Commas separate partitions, colons separate replicas, and spaces around ids are allowed. With `brokers`,
    every id must be one of theirs. A trailing separator is refused, although Kafka's tool ignores it: it may
    be a replica that got lost.
    """
    assignment = {
        partition: [_broker_id(partition, word) for word in _words(partition, part)]
        for partition, part in enumerate(text.split(","))
    }
    check_replicas(assignment, replication_factor=len(assignment[0]))
    if brokers is not None:
        check_known(assignment, brokers)
    return assignment


def check_replicas(assignment: Mapping[int, Sequence[BrokerId]], *, replication_factor: int) -> None:
    """Refuse partitions without replicas, with a broker twice, or with another count than `factor`."""
    for partition, replicas in sorted(assignment.items()):
        if not replicas:
            raise InvalidReplicaAssignment(f"Partition {partition} has no replicas; it needs at least one.")
        if len(set(replicas)) < len(replicas):
            raise InvalidReplicaAssignment(
                f"Partition {partition} names a broker more than once ({_listed(replicas)}); "
                "a broker holds at most one replica of a partition."
            )
        if len(replicas) != replication_factor:
            raise InvalidReplicaAssignment(
                f"Partition {partition} has {len(replicas)} replicas ({_listed(replicas)}) "
                f"while partition 0 has {replication_factor}; give all partitions the same number."
            )


def check_known(assignment: Mapping[int, Sequence[BrokerId]], brokers: Iterable[Broker]) -> None:
    """Refuse replicas on unknown brokers."""
    known = {broker.id for broker in brokers}
    for partition, replicas in sorted(assignment.items()):
        unknown = [replica for replica in replicas if replica not in known]
        if unknown:
            raise InvalidReplicaAssignment(
                f"Partition {partition} names unknown broker {_listed(unknown)}; "
                f"there are {_listed(sorted(known)) or 'none'}."
            )


def _words(partition: int, part: str) -> list[str]:
    if not part.strip():
        raise InvalidReplicaAssignment(
            f"Partition {partition} is empty; write its broker ids with colons between, as in 0:1:2,1:2:0."
        )
    return part.split(":")


def _broker_id(partition: int, word: str) -> BrokerId:
    digits = word.strip()
    if digits.isascii() and digits.isdigit() and len(digits) <= _LONGEST_ID and int(digits) <= LARGEST_ID:
        return int(digits)
    raise InvalidReplicaAssignment(
        f"Partition {partition} has {digits!r} where a broker id should be (0 to {LARGEST_ID}); "
        "write ids with colons between, as in 0:1:2,1:2:0."
    )


def _listed(ids: Iterable[BrokerId]) -> str:
    return ", ".join(map(str, ids))
