"""The lines that the tool prints. Scripts read them, so they are exactly the original's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.plan.files.kafka_json import format_reassignment

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from restow.client import PartitionReassignment
    from restow.model import BrokerId, TopicPartition

    Assignment = Mapping[TopicPartition, Sequence[BrokerId]]
    LogDirs = Mapping[tuple[TopicPartition, BrokerId], str]

EXISTING = (
    "Cannot execute because there is an existing partition assignment.  Use --additional to override this "
    "and create a new partition assignment in addition to the existing one. The --additional flag can also "
    "be used to change the throttle by resubmitting the current reassignment."
)
RUNNING = "There is an existing assignment running."
RUN_VERIFY = (
    "Warning: You must run --verify periodically, until the reassignment completes, to ensure the throttle "
    "is removed."
)
STATUS = "Status of partition reassignment:"
NO_MOVES = "No partition reassignments found."
NONE_ACTIVE = "None of the specified partition reassignments are active."
NO_DIR_MOVES = "None of the specified partition moves are active."
MIXED_RACKS = (
    "Not all brokers have rack information. Add --disable-rack-aware in command line to make replica "
    "assignment without rack information."
)


def comma(items: Iterable[object]) -> str:
    return ",".join(map(str, items))


def s(items: Collection[object]) -> str:
    """Return the plural ending."""
    return "" if len(items) == 1 else "s"


def generated(current: Assignment, dirs: LogDirs, proposed: Assignment) -> list[str]:
    return [
        "Current partition replica assignment",
        format_reassignment(current, dirs),
        "",
        "Proposed partition reassignment configuration",
        format_reassignment(proposed),
    ]


def current(assignment: Assignment, dirs: LogDirs) -> list[str]:
    return [
        "Current partition replica assignment",
        "",
        format_reassignment(assignment, dirs),
        "",
        "Save this to use as the --reassignment-json-file option during rollback",
    ]


def throttle_set(what: str, bytes_per_s: int) -> str:
    return f"The {what} throttle limit was set to {bytes_per_s} B/s"


def started(partitions: Collection[TopicPartition]) -> str:
    return f"Successfully started partition reassignment{s(partitions)} for {comma(sorted(partitions))}"


def dir_move_started(partition: TopicPartition, broker: BrokerId, path: str) -> str:
    """Return the line, with the original's trailing space."""
    where = f"to {path} for replica {partition} with broker {broker}"
    return f"Successfully started moving log directory {where} "


def dir_moves_late(replicas: Collection[str]) -> str:
    return f"Timed out before log directory move{s(replicas)} could be started for: {comma(sorted(replicas))}"


def refused(errors: Mapping[TopicPartition, str]) -> str:
    return "\n".join(["Error reassigning partition(s):", *_each(errors)])


def aborted(partitions: Collection[TopicPartition]) -> str:
    return f"Partition reassignment currently in progress for {comma(sorted(partitions))}. Aborting operation"


def not_cancelled(errors: Mapping[TopicPartition, str]) -> str:
    return "\n".join([f"Error cancelling partition reassignment{s(errors)} for:", *_each(errors)])


def cancelled(partitions: Collection[TopicPartition]) -> str:
    return f"Successfully cancelled partition reassignment{s(partitions)} for: {comma(sorted(partitions))}"


def _each(errors: Mapping[TopicPartition, str]) -> list[str]:
    return [f"{partition}: {said}" for partition, said in sorted(errors.items())]


def progress(
    target: Assignment, now: Assignment, moves: Mapping[TopicPartition, PartitionReassignment]
) -> list[str]:
    """Return the progress of each partition. One that does not exist has no replicas."""
    return [
        STATUS,
        *(_state(each, target[each], now.get(each, ()), each in moves) for each in sorted(target)),
    ]


def _state(
    partition: TopicPartition, target: Sequence[BrokerId], now: Sequence[BrokerId], moving: bool
) -> str:
    if moving:
        return f"Reassignment of partition {partition} is still in progress."
    if tuple(now) == tuple(target):
        return f"Reassignment of partition {partition} is completed."
    return (
        f"There is no active reassignment of partition {partition}, but replica set is {comma(now)} "
        f"rather than {comma(target)}."
    )


def clearing_brokers(brokers: Collection[BrokerId]) -> str:
    return f"Clearing broker-level throttles on broker{s(brokers)} {comma(sorted(brokers))}"


def clearing_topics(topics: Collection[str]) -> str:
    return f"Clearing topic-level throttles on topic{s(topics)} {comma(sorted(topics))}"


def listing(moves: Mapping[TopicPartition, PartitionReassignment]) -> list[str]:
    if not moves:
        return [NO_MOVES]
    return ["Current partition reassignments:", *(_move(each, moves[each]) for each in sorted(moves))]


def _move(partition: TopicPartition, move: PartitionReassignment) -> str:
    adding = f" adding: {comma(move.adding)}." if move.adding else ""
    removing = f" removing: {comma(move.removing)}." if move.removing else ""
    return f"{partition}: replicas: {comma(move.replicas)}.{adding}{removing}"
