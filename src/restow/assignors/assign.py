"""The entry point: check the input, call the assignor, and check a plugin's answer."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from restow.assignors.checks import check_answer, check_members, check_partitions, check_racks
from restow.assignors.registry import get
from restow.assignors.rows import in_lists
from restow.errors import AssignorFailed, RestowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from restow.assignors.base import Assignment, Dealt, PartitionRacks
    from restow.model import Member, TopicPartition

_MOST_ROUNDS = 4


def assign(
    name: str,
    partitions: Mapping[str, int],
    members: Iterable[Member],
    partition_racks: PartitionRacks | None = None,
    work: Mapping[TopicPartition, float] | None = None,
) -> Assignment:
    """Assign a group's partitions with the assignor of that name.

    `partitions` has the count of each topic; topics without partitions, and topics that do not exist, are
    skipped. `partition_racks` has, for each topic, the racks of each partition's replicas; `work` what is
    known of each partition's expected work. Every member is a key of the answer.
    """
    with _collector_paused():
        return in_lists(assign_rows(name, partitions, members, partition_racks, work))


def assign_rows(
    name: str,
    partitions: Mapping[str, int],
    members: Iterable[Member],
    partition_racks: PartitionRacks | None = None,
    work: Mapping[TopicPartition, float] | None = None,
) -> Dealt:
    """Do what `assign` does, but leave each member's partitions in the form in which they were found.

    Mostly they are rows (`rows.PartitionRow`): sequences that make their partitions when somebody looks at
    them. Who gives rows back as `Member(owned=…)` spares reading partition by partition.
    """
    assignor = get(name)
    with _collector_paused():
        listed = check_members(members)
        check_partitions(partitions)
        check_racks(partitions, partition_racks)
        if type(assignor).__module__.startswith("restow."):
            return assignor.assign_by_work(partitions, listed, work or {}, partition_racks)
    try:
        answer: object = assignor.assign_by_work(partitions, listed, work or {}, partition_racks)
    except RestowError:
        raise
    except Exception as error:
        raise AssignorFailed(f"assignor {name!r} failed: {type(error).__name__}: {error}") from error
    return check_answer(name, partitions, listed, answer)


def settled(
    name: str,
    partitions: Mapping[str, int],
    members: Iterable[Member],
    partition_racks: PartitionRacks | None = None,
    work: Mapping[TopicPartition, float] | None = None,
) -> tuple[Assignment, int]:
    """Return the assignment after which nothing changes any more, and the number of rounds to it.

    A cooperative assignor takes partitions away in one round, and gives them to others in the next.
    """
    answer, rounds = settled_rows(name, partitions, members, partition_racks, work)
    return in_lists(answer), rounds


def settled_rows(
    name: str,
    partitions: Mapping[str, int],
    members: Iterable[Member],
    partition_racks: PartitionRacks | None = None,
    work: Mapping[TopicPartition, float] | None = None,
) -> tuple[dict[str, Sequence[TopicPartition]], int]:
    """Do what `settled` does, with rows as `assign_rows` returns them."""
    listed = tuple(members)
    answer = assign_rows(name, partitions, listed, partition_racks, work)
    rounds = 1
    while get(name).cooperative and rounds <= _MOST_ROUNDS:
        holding = [replace(m, owned=answer.get(m.id, ()), user_data=None) for m in listed]
        again = assign_rows(name, partitions, holding, partition_racks, work)
        if again == answer:
            break
        answer, rounds = again, rounds + 1
    return {member.id: answer[member.id] for member in listed}, rounds


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause the cyclic garbage collector.

    An answer of a million partitions is a million live objects; visiting them again and again takes longer
    than creating them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
