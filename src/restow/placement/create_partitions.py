"""Add partitions to an existing topic: only the new ones are placed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.errors import InvalidPartitions, InvalidReplicaAssignment
from restow.placement.by_hand import check_known, check_replicas, parse_by_hand
from restow.placement.modes import RackMode
from restow.placement.place import check_brokers, place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from restow.model import Broker, BrokerId


def create_partitions(
    current: Mapping[int, Sequence[BrokerId]],
    brokers: Iterable[Broker],
    to: int,
    *,
    by_hand: str | Mapping[int, Sequence[BrokerId]] | None = None,
    rack_mode: RackMode | str = RackMode.ENFORCED,
) -> dict[int, list[BrokerId]]:
    """Replicas of the partitions that must be added so that the topic has `to` of them.

    The factor is that of partition 0, and placement goes on from where partition 0's leader stands among
    the brokers. Kafka lists its brokers by id before it asks, so do likewise to get its answer.

    `by_hand` names all `to` partitions, as text or parsed. The existing ones come first and are skipped, not
    changed, so their brokers need not be there any more; the others become the answer if they are sound.
    """
    brokers = tuple(brokers)
    _check_growth(current, to)
    replicas_of_0 = current[0]
    if by_hand is not None:
        return _new_by_hand(by_hand, brokers, len(current), to, replication_factor=len(replicas_of_0))
    positions = (index for index, broker in enumerate(brokers) if broker.id >= replicas_of_0[0])
    placed = place(
        brokers,
        to - len(current),
        len(replicas_of_0),
        start_index=next(positions, 0),
        start_partition=len(current),
        rack_mode=rack_mode,
    )
    return dict(enumerate(placed.tolist(), start=len(current)))


def _check_growth(current: Mapping[int, Sequence[BrokerId]], to: int) -> None:
    if 0 not in current:
        raise InvalidPartitions(
            "The topic has no partition 0, from which the new ones take their replication factor; "
            "give the current replicas of all its partitions."
        )
    if to <= len(current):
        raise InvalidPartitions(
            f"The topic has {len(current)} partitions and {to} would not be more; "
            "partitions can only be added."
        )
    missing = next((partition for partition in range(len(current)) if partition not in current), None)
    if missing is not None:
        raise InvalidPartitions(
            f"{len(current)} current partitions are given, but partition {missing} is not among them; "
            "give all of them, counted from 0."
        )
    if not current[0]:
        raise InvalidReplicaAssignment("Partition 0 has no replicas, so the factor for new ones is unknown.")


def _new_by_hand(
    by_hand: str | Mapping[int, Sequence[BrokerId]],
    brokers: Sequence[Broker],
    existing: int,
    to: int,
    *,
    replication_factor: int,
) -> dict[int, list[BrokerId]]:
    check_brokers(brokers)
    named = parse_by_hand(by_hand) if isinstance(by_hand, str) else by_hand
    if set(named) != set(range(to)):
        raise InvalidReplicaAssignment(
            f"The topic is to have {to} partitions and the list by hand names {len(named)}; "
            f"name each from 0 to {to - 1}, the {existing} existing ones first."
        )
    new = {partition: list(named[partition]) for partition in range(existing, to)}
    check_replicas(new, replication_factor=replication_factor)
    check_known(new, brokers)
    return new
