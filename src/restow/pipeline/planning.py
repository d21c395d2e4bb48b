"""One cluster of the fleet: from Arrow tables to a snapshot and loads, to a plan, to one row about it."""

from __future__ import annotations

from dataclasses import field
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from restow._frozen import frozen
from restow.errors import RestowError
from restow.model import Copy, LiveBroker, LogDir, Partition, Snapshot, Topic, TopicPartition
from restow.model.load import BYTES_IN, BYTES_OUT, LoadModel, Resource
from restow.plan.files.text import dumps
from restow.plan.planning import make_plan
from restow.plan.request.request import PlanRequest
from restow.runtime.memory import collector_paused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.model import Plan
    from restow.plan.explain.explain import Explanation

GOALS = ("disk", "bytes_in", "bytes_out", "replicas", "leaders")
RESOURCES = (BYTES_IN, BYTES_OUT)
_HALF_FULL = 0.5


@frozen
class FleetRequest:
    """The goals of every cluster's plan, and the search time for each."""

    request: PlanRequest = field(default_factory=lambda: PlanRequest(balance=True))
    seconds: float = 30.0
    measure: str = "mean"
    """Which of the model's measures counts as the load: mean, p95 or peak."""


def planned(cluster: str, partitions: Any, brokers: Any, asked: FleetRequest) -> dict[str, Any]:
    """Return one row: the cluster's state before and after, and the plan; or the reason why there is none."""
    with collector_paused():
        return _planned(cluster, partitions, brokers, asked)


def _planned(cluster: str, partitions: Any, brokers: Any, asked: FleetRequest) -> dict[str, Any]:
    about: dict[str, Any] = {"cluster": cluster, "at": None, "urgency": 0.0, "because": ""}
    rows, disks = partitions.to_pylist(), brokers.to_pylist()
    if not rows or not disks:
        lacking = "partitions" if not rows else "brokers"
        return about | {"error": f"the lake knows no {lacking} of this cluster: collect more samples"}
    snapshot = snapshot_of(cluster, rows, disks)
    load, without = load_of(snapshot, rows)
    about |= {"at": max(row["at"] for row in rows), "without_load": without} | _standing(snapshot)
    try:
        made = make_plan(snapshot, load, asked.request, seconds=asked.seconds)
        told = made.explain()
    except RestowError as error:
        return about | _urgency(about, None, asked) | {"error": str(error)}
    return (
        about
        | _gains(made.plan, told)
        | _urgency(about, told, asked)
        | {"plan": dumps(made.plan), "error": None}
    )


def snapshot_of(
    cluster: str, rows: Iterable[Mapping[str, Any]], disks: Iterable[Mapping[str, Any]]
) -> Snapshot:
    """Return the newest state in the lake. Brokers that did not answer are in it, without log dirs."""
    by_name = sorted(rows, key=itemgetter("topic", "partition"))
    by_broker = sorted(disks, key=itemgetter("broker"))
    brokers = {broker: list(each) for broker, each in groupby(by_broker, itemgetter("broker"))}
    return Snapshot(
        cluster_id=cluster,
        taken_ms=int(max(row["at"] for row in by_name).timestamp() * 1000),
        controller=None,
        brokers=tuple(_broker(broker, each) for broker, each in brokers.items()),
        topics=tuple(
            Topic(name=name, partitions=_partitions(each))
            for name, each in groupby(by_name, itemgetter("topic"))
        ),
        unanswered=tuple(
            broker for broker, each in brokers.items() if all(row["log_dir"] is None for row in each)
        ),
    )


def _broker(broker: int, rows: Iterable[Mapping[str, Any]]) -> LiveBroker:
    listed = list(rows)
    return LiveBroker(
        id=broker,
        host="",
        port=0,
        rack=next((row["rack"] for row in listed if row["rack"] is not None), None),
        log_dirs=tuple(
            LogDir(
                path=row["log_dir"],
                total_bytes=row["total"],
                usable_bytes=row["usable"],
                failed=row["error"] is not None,
            )
            for row in listed
            if row["log_dir"] is not None
        ),
    )


def _partitions(rows: Iterable[Mapping[str, Any]]) -> tuple[Partition, ...]:
    """Return the partitions by number, up to the first number that the lake does not have."""
    found: list[Partition] = []
    for row in rows:
        if row["partition"] != len(found):
            break
        found.append(
            Partition(
                number=row["partition"],
                replicas=tuple(row["replicas"]),
                isr=tuple(row["isr"]),
                leader=None if row["leader"] < 0 else row["leader"],
                copies=tuple(
                    Copy(
                        broker=each["broker"],
                        log_dir=each["log_dir"],
                        size_bytes=each["size"],
                        future=each["is_future"],
                    )
                    for each in row["copies"] or ()
                ),
            )
        )
    return tuple(found)


def load_of(snapshot: Snapshot, rows: Iterable[Mapping[str, Any]]) -> tuple[LoadModel | None, int]:
    """Return the loads of partitions, and how many of them the model does not know fully.

    The planner needs a number: an unknown load counts as zero.
    """
    known = {TopicPartition(row["topic"], row["partition"]): row for row in rows if row["loads"] is not None}
    names = tuple(name for name, _ in snapshot.all_partitions())
    if not any(name in known for name in names):
        return None, len(names)
    columns = [f"{resource}_{role}" for resource in RESOURCES for role in ("leading", "following")]
    told = [known[name]["loads"] if name in known else dict.fromkeys(columns) for name in names]
    without = sum(any(each[column] is None for column in columns) for each in told)
    loads = [{column: each[column] or 0.0 for column in columns} for each in told]
    return (
        LoadModel(
            cluster_id=snapshot.cluster_id,
            made_ms=snapshot.taken_ms,
            partitions=names,
            resources={
                resource: Resource(
                    leading=np.array([each[f"{resource}_leading"] for each in loads], dtype=np.float64),
                    following=np.array([each[f"{resource}_following"] for each in loads], dtype=np.float64),
                )
                for resource in RESOURCES
            },
        ),
        without,
    )


def _standing(snapshot: Snapshot) -> dict[str, Any]:
    """Return the state of the cluster before the plan."""
    listed = [partition for _, partition in snapshot.all_partitions()]
    share, where = max(
        (
            (1 - each.usable_bytes / each.total_bytes, f"{each.path} of broker {broker.id}")
            for broker in snapshot.brokers
            for each in broker.log_dirs
            if each.total_bytes and each.usable_bytes is not None and not each.failed
        ),
        default=(None, None),
    )
    return {
        "brokers": len(snapshot.brokers),
        "partitions": len(listed),
        "replicas": sum(len(partition.replicas) for partition in listed),
        "size": sum(copy.size_bytes for partition in listed for copy in partition.copies),
        "offline": sum(partition.leader is None for partition in listed),
        "under_replicated": sum(len(partition.isr) < len(partition.replicas) for partition in listed),
        "fullest": share,
        "fullest_where": where,
    }


def _gains(plan: Plan, told: Explanation) -> dict[str, Any]:
    gains: dict[str, Any] = {
        "moves": len(plan.moves),
        "waves": len(plan.waves),
        "copied": plan.bytes_to_copy,
        "bound": plan.bound_bytes,
        "ratio": told.ratio,
        "unmet": len(told.unmet),
    }
    for goal in told.goals:
        if goal.name in GOALS:
            gains |= {f"{goal.name}_before": goal.before[0], f"{goal.name}_after": goal.after[0]}
    return gains


def _urgency(about: Mapping[str, Any], told: Explanation | None, asked: FleetRequest) -> dict[str, Any]:
    """Return the most urgent of four problems, each between 0 and 1, and its name.

    Offline partitions are the worst. A log dir counts from half full on, and reaches 1 when it is as full as
    allowed. Missing replicas count half. A goal counts by how far the busiest broker is above its band, at
    most twice its share.
    """
    reasons = [(0.0, "nothing")]
    if about["offline"]:
        reasons.append((1.0, f"{about['offline']:,} partitions offline"))
    if about["under_replicated"]:
        reasons.append((0.5, f"{about['under_replicated']:,} partitions lack a replica"))
    if about["fullest"] is not None:
        pressure = (about["fullest"] - _HALF_FULL) / (asked.request.fill - _HALF_FULL)
        reasons.append(
            (float(np.clip(pressure, 0, 1)), f"{about['fullest_where']} is {about['fullest']:.0%} full")
        )
    for goal in told.goals if told else ():
        excess = goal.before[0] - 1 - (goal.band or 0.0)
        reasons.append((float(np.clip(excess, 0, 1)), f"a broker has {goal.before[0]:.2f} × its {goal.name}"))
    worst = max(reasons, key=itemgetter(0))
    return {"urgency": worst[0], "because": worst[1]}
