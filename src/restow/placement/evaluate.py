"""Evaluate any assignment: how even it is, and how well it is spread over racks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from restow._frozen import frozen
from restow.errors import InvalidReplicaAssignment
from restow.placement.place import check_brokers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.model import Broker, BrokerId, Rack


@frozen
class BrokerLoad:
    """The load of one broker; it leads the partitions whose first replica it is."""

    id: BrokerId
    rack: Rack | None
    replicas: int
    leaders: int


@frozen
class RackSpread:
    """How many racks the partitions' replicas span."""

    racks: int
    partitions_short: int
    """Partitions that span fewer racks than their replicas and the racks would allow."""
    fewest: int
    most: int


@frozen
class Evaluation:
    """The result. Loads keep the order of the brokers; rack spread is None unless every broker has a rack."""

    partitions: int
    loads: tuple[BrokerLoad, ...]
    rack_spread: RackSpread | None

    @property
    def replicas(self) -> dict[BrokerId, int]:
        """Replicas per broker."""
        return {load.id: load.replicas for load in self.loads}

    @property
    def leaders(self) -> dict[BrokerId, int]:
        """Preferred leaders per broker."""
        return {load.id: load.leaders for load in self.loads}

    @property
    def replicas_max_over_mean(self) -> float:
        """The fullest broker's replicas over the average: 1 is perfectly even."""
        return _max_over_mean([load.replicas for load in self.loads])

    @property
    def leaders_max_over_mean(self) -> float:
        """The same for leaders."""
        return _max_over_mean([load.leaders for load in self.loads])


def evaluate(
    assignment: npt.NDArray[np.integer[Any]] | Mapping[int, Sequence[BrokerId]], brokers: Iterable[Broker]
) -> Evaluation:
    """Evaluate replicas given as `place` returns them (a row per partition) or by partition id.

    Refuse a partition without replicas, with a broker twice, or on an unknown broker. Partitions may differ
    in their number of replicas.
    """
    brokers = tuple(brokers)
    check_brokers(brokers)
    names, sizes, replicas = _flattened(assignment)
    rows = np.repeat(np.arange(len(names)), sizes)
    positions = _positions(replicas, brokers, names, rows)
    _check_distinct(positions, len(brokers), names, rows)
    firsts = np.concatenate(([0], np.cumsum(sizes)[:-1])).astype(np.intp)[: len(names)]
    per_broker = np.bincount(positions, minlength=len(brokers)).tolist()
    leading = np.bincount(positions[firsts], minlength=len(brokers)).tolist()
    return Evaluation(
        partitions=len(names),
        loads=tuple(
            BrokerLoad(id=broker.id, rack=broker.rack, replicas=held, leaders=led)
            for broker, held, led in zip(brokers, per_broker, leading, strict=True)
        ),
        rack_spread=_rack_spread(brokers, positions, rows, sizes),
    )


Flat = tuple["Sequence[int]", npt.NDArray[np.intp], npt.NDArray[np.int64]]


def _flattened(assignment: npt.NDArray[np.integer[Any]] | Mapping[int, Sequence[BrokerId]]) -> Flat:
    """Return partition ids, the number of replicas of each, and all replicas in one array."""
    if isinstance(assignment, Mapping):
        names: Sequence[int] = list(assignment)
        sizes = np.array([len(replicas) for replicas in assignment.values()], dtype=np.intp)
        flat = [broker for replicas in assignment.values() for broker in replicas]
        replicas = np.array(flat, dtype=np.int64)
    else:
        table = np.asarray(assignment)
        if table.ndim != 2:
            raise InvalidReplicaAssignment(
                "An assignment has two dimensions, a row per partition and a column per replica; "
                f"this one has {table.ndim}."
            )
        names = range(len(table))
        sizes = np.full(len(table), table.shape[1], dtype=np.intp)
        replicas = table.ravel().astype(np.int64)
    if not np.all(sizes):
        raise InvalidReplicaAssignment(f"Partition {names[int(np.argmin(sizes))]} has no replicas.")
    return names, sizes, replicas


def _positions(
    replicas: npt.NDArray[np.int64],
    brokers: Sequence[Broker],
    names: Sequence[int],
    rows: npt.NDArray[np.intp],
) -> npt.NDArray[np.intp]:
    """Return each replica's broker as its index in the broker list."""
    ids = np.array([broker.id for broker in brokers], dtype=np.int64)
    by_id = np.argsort(ids)
    nearest = np.searchsorted(ids, replicas, sorter=by_id)
    found: npt.NDArray[np.intp] = by_id[np.minimum(nearest, ids.size - 1)]
    unknown = np.flatnonzero(ids[found] != replicas)
    if unknown.size:
        raise InvalidReplicaAssignment(
            f"Partition {names[rows[unknown[0]]]} is on broker {replicas[unknown[0]]}, "
            "which is not among the brokers; add it to them or move the replica."
        )
    return found


def _check_distinct(
    positions: npt.NDArray[np.intp], brokers: int, names: Sequence[int], rows: npt.NDArray[np.intp]
) -> None:
    places = np.sort(rows * brokers + positions)
    twice = np.flatnonzero(places[1:] == places[:-1])
    if twice.size:
        raise InvalidReplicaAssignment(
            f"Partition {names[int(places[twice[0]]) // brokers]} names a broker more than once; "
            "a broker holds at most one replica of a partition."
        )


def _rack_spread(
    brokers: Sequence[Broker],
    positions: npt.NDArray[np.intp],
    rows: npt.NDArray[np.intp],
    sizes: npt.NDArray[np.intp],
) -> RackSpread | None:
    if any(broker.rack is None for broker in brokers):
        return None
    number: dict[Rack | None, int] = {}
    racks = np.array([number.setdefault(broker.rack, len(number)) for broker in brokers], dtype=np.intp)
    distinct = np.unique(rows * len(number) + racks[positions]) // len(number)
    spread = np.bincount(distinct, minlength=sizes.size)
    return RackSpread(
        racks=len(number),
        partitions_short=int(np.count_nonzero(spread < np.minimum(sizes, len(number)))),
        fewest=int(spread.min(initial=len(number))) if sizes.size else 0,
        most=int(spread.max(initial=0)),
    )


def _max_over_mean(counts: Sequence[int]) -> float:
    """Return the largest count over the mean; 1 if there is nothing, because nothing is even."""
    total = sum(counts)
    return max(counts) * len(counts) / total if total else 1.0
