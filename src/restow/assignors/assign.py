"""The entry point: check the input, call the assignor, and check a plugin's answer."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

from restow.assignors.checks import check_answer, check_members, check_partitions, check_racks
from restow.assignors.registry import get
from restow.errors import AssignorFailed, RestowError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from restow.assignors.base import Assignment, PartitionRacks
    from restow.model import Member


def assign(
    name: str,
    partitions: Mapping[str, int],
    members: Iterable[Member],
    partition_racks: PartitionRacks | None = None,
) -> Assignment:
    """Assign a group's partitions with the assignor of that name.

    `partitions` has the count of each topic; topics without partitions, and topics that do not exist, are
    skipped. `partition_racks` has, for each topic, the racks of each partition's replicas. Every member is a
    key of the answer.
    """
    assignor = get(name)
    with _collector_paused():
        listed = check_members(members)
        check_partitions(partitions)
        check_racks(partitions, partition_racks)
        if type(assignor).__module__.startswith("restow."):
            return assignor.assign(partitions, listed, partition_racks)
    try:
        answer: object = assignor.assign(partitions, listed, partition_racks)
    except RestowError:
        raise
    except Exception as error:
        raise AssignorFailed(f"assignor {name!r} failed: {type(error).__name__}: {error}") from error
    return check_answer(name, partitions, listed, answer)


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
