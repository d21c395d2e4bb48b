"""Check the promises of a plan, each as a goal, whatever moves the plan had.

Partitions created since the plan was made count where a broker is to be empty, and are named as such: one
that holds them is not empty. They do not count for the band of a goal, which the plan could not know better.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, NamedTuple

from restow.plan.drift import ids_of, remade
from restow.sizes import some
from restow.verify.evidence import none_of, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from restow.model import BrokerId, Check, Partition, Plan, Promise, Snapshot, TopicPartition

_WILDCARDS = ("*", "?", "[")
_COUNTED = ("replicas", "leaders")


def promise_checks(plan: Plan, snapshot: Snapshot) -> tuple[Check, ...]:
    """Return a check for each promise of the plan."""
    left = {each.partition: each.why for each in plan.leaves}
    apart = _Apart(left, _made_since(plan, snapshot))
    return tuple(_check(promise, snapshot, apart) for promise in plan.promises)


class _Apart(NamedTuple):
    """Partitions that the plan did not move: those that it left out, and those that it did not know."""

    left: Mapping[TopicPartition, str]
    new: frozenset[TopicPartition]


def _made_since(plan: Plan, snapshot: Snapshot) -> frozenset[TopicPartition]:
    """Return the partitions made after the plan; none if the plan does not say which it knew."""
    known = plan.known_partitions
    if not known:
        return frozenset()
    again = remade(plan.topic_ids, ids_of(snapshot))
    return frozenset(
        name
        for name, _ in snapshot.all_partitions()
        if name.topic in again or name.partition >= known.get(name.topic, 0)
    )


def _check(promise: Promise, snapshot: Snapshot, apart: _Apart) -> Check:
    kinds: Mapping[str, Callable[[Promise, Snapshot, _Apart], Check]] = {
        "drained": _drained,
        "replaced": _drained,
        "no_leaders": _no_leaders,
        "replication_factor": _factor,
        "racks_apart": _racks_apart,
        "balanced": _balanced,
    }
    known = kinds.get(promise.kind)
    if known is None:
        return unknown(
            promise.kind.replace("_", " "),
            "this Restow does not know that kind of promise",
            "verify it with the version that made the plan",
        )
    return known(promise, snapshot, apart)


def _meant(promise: Promise, snapshot: Snapshot) -> Iterator[tuple[TopicPartition, Partition]]:
    """Yield the partitions of a promise; a wildcard of a factor does not match internal topics."""
    for name, partition in snapshot.all_partitions():
        patterns = promise.topics
        if promise.replication_factor is not None and snapshot.topic[name.topic].internal:
            patterns = tuple(each for each in patterns if not each.startswith(_WILDCARDS))
            if not patterns:
                continue
        if not patterns or any(fnmatchcase(name.topic, pattern) for pattern in patterns):
            yield name, partition


def _told(name: TopicPartition, what: str, apart: _Apart) -> str:
    """Describe a partition's problem; if the plan left it out, or is older, add that."""
    words = f"{name} {what}".rstrip()
    if name in apart.left:
        return f"{words} (the plan left it out: {apart.left[name]})"
    return f"{words} (made after the plan)" if name in apart.new else words


def _result(
    name: str, promise: Promise, snapshot: Snapshot, wrong: list[str], *, good: str, advice: str
) -> Check:
    """Return a check that passes if nothing is wrong and every topic of the promise is visible."""
    hidden = [
        topic
        for topic in snapshot.hidden_topics
        if not promise.topics or any(fnmatchcase(topic, pattern) for pattern in promise.topics)
    ]
    if hidden and not wrong:
        return unknown(
            name,
            f"topics that we may not describe have replicas too: {some(hidden)}",
            "grant DESCRIBE on them, and ask again",
        )
    return none_of(name, wrong, "partition", good=good, advice=advice)


def _of_topics(promise: Promise) -> str:
    return f" of topics {', '.join(promise.topics)}" if promise.topics else ""


def _drained(promise: Promise, snapshot: Snapshot, apart: _Apart) -> Check:
    brokers = promise.brokers[:1] if promise.kind == "replaced" else promise.brokers
    listed = ", ".join(map(str, brokers))
    wrong = [
        _told(name, f"on broker {', '.join(map(str, still))}", apart)
        for name, partition in _meant(promise, snapshot)
        if (still := sorted({*partition.replicas} & {*brokers}))
    ]
    return _result(
        f"broker {listed} is empty{_of_topics(promise)}",
        promise,
        snapshot,
        wrong,
        good="no partition has a replica there",
        advice=f"plan what is left: restow plan drain {listed.replace(' ', '')}",
    )


def _no_leaders(promise: Promise, snapshot: Snapshot, apart: _Apart) -> Check:
    listed = ", ".join(map(str, promise.brokers))
    wrong = [
        _told(name, f"led by broker {partition.leader}", apart)
        for name, partition in _meant(promise, snapshot)
        if partition.leader in promise.brokers
    ]
    return _result(
        f"broker {listed} leads nothing{_of_topics(promise)}",
        promise,
        snapshot,
        wrong,
        good="no partition is led there",
        advice="let the first replicas be elected (restow doctor --fix), or plan what is left: "
        f"restow plan demote {listed.replace(' ', '')}",
    )


def _factor(promise: Promise, snapshot: Snapshot, apart: _Apart) -> Check:
    wrong = [
        _told(name, f"with {len(partition.replicas)}", apart)
        for name, partition in _meant(promise, snapshot)
        if len(partition.replicas) != promise.replication_factor
    ]
    topics = ",".join(promise.topics)
    return _result(
        f"{promise.replication_factor} replicas{_of_topics(promise)}",
        promise,
        snapshot,
        wrong,
        good="every partition has as many",
        advice=f"plan what is left: restow plan change-rf {promise.replication_factor} --topics '{topics}'",
    )


def _racks_apart(promise: Promise, snapshot: Snapshot, apart: _Apart) -> Check:
    name = f"racks apart{_of_topics(promise)}"
    racks = {broker.id: broker.rack for broker in snapshot.brokers}
    down = {
        each for _, partition in _meant(promise, snapshot) for each in partition.replicas if each not in racks
    }
    if down:
        return unknown(
            name,
            f"brokers that are down do not tell their racks: {some(sorted(down))}",
            "start them, or move their replicas away",
        )
    possible = {racks[each] for each in promise.brokers if each in racks} or {*racks.values()}
    wrong = []
    for which, partition in _meant(promise, snapshot):
        there = {racks[each] for each in partition.replicas}
        if racks and len(there) < min(len(partition.replicas), len(there | possible)):
            wrong.append(_told(which, f"in {len(there)} of {len(there | possible)} racks", apart))
    if {*racks.values()} == {None}:
        wrong = []
    return _result(
        name,
        promise,
        snapshot,
        wrong,
        good="no two replicas are in one rack while another has none",
        advice="plan what is left: restow plan fix-racks",
    )


def _balanced(promise: Promise, snapshot: Snapshot, apart: _Apart) -> Check:
    """Check that a goal is in its band now; data written since counts too, but no partition made since."""
    name, band = f"{promise.goal} in band", promise.band or 0.0
    missing = sorted({*promise.brokers} - snapshot.broker.keys())
    untold = missing or [each for each in promise.brokers if each in snapshot.unanswered]
    if untold and (missing or promise.goal == "disk"):
        return unknown(name, f"no word from broker {some(untold)}", "see why it does not answer")
    check = none_of(
        name,
        _out_of_band(promise, snapshot, apart.new),
        "broker",
        good=f"every broker is within {band:.1%} of its share, or has the next whole number",
        advice="what was written since counts too; plan anew: restow plan balance",
    )
    if not apart.new:
        return check
    topics = some(sorted({each.topic for each in apart.new}))
    told = f"{check.evidence}; partitions made after the plan do not count ({topics})"
    with_them = _out_of_band(promise, snapshot)
    return replace(check, evidence=told + (f", with them: {some(with_them)}" if with_them else ""))


def _out_of_band(promise: Promise, snapshot: Snapshot, without: Collection[TopicPartition] = ()) -> list[str]:
    """Return the brokers out of the band of a goal, with their multiples of a share."""
    band = promise.band or 0.0
    loads = _loads(promise.goal, snapshot, without)
    strength = _strength(promise, snapshot)
    total, whole = sum(loads.get(each, 0) for each in promise.brokers), sum(strength.values())
    wrong = []
    for broker in promise.brokers:
        share = total * strength[broker] / whole if whole else 0.0
        low, high = share * (1 - band), share * (1 + band)
        if promise.goal in _COUNTED:
            low, high = min(low, math.floor(share + 1e-9)), max(high, math.ceil(share - 1e-9))
        if not low - 1e-9 * share <= loads.get(broker, 0) <= high + 1e-9 * share:
            wrong.append(f"broker {broker} at {loads.get(broker, 0) / share:.3f} × its share")
    return wrong


def _loads(goal: str, snapshot: Snapshot, without: Collection[TopicPartition]) -> dict[BrokerId, int]:
    found: dict[BrokerId, int] = {}
    for name, partition in snapshot.all_partitions():
        if name in without:
            continue
        first = next((each for each in partition.replicas if each in snapshot.broker), None)
        size, own = (partition.size_bytes, partition.own_sizes) if goal == "disk" else (0, {})
        for broker in partition.replicas:
            amounts = {"disk": own.get(broker, size), "replicas": 1, "leaders": int(broker == first)}
            found[broker] = found.get(broker, 0) + amounts.get(goal, 0)
    return found


def _strength(promise: Promise, snapshot: Snapshot) -> dict[BrokerId, float]:
    """Return each broker's capacity: its disk size for bytes, otherwise the same for all."""
    known: dict[BrokerId, float] = {}
    if promise.goal == "disk":
        sizes = {broker.id: broker.disk_bytes for broker in snapshot.brokers}
        known = {broker: float(size) for broker, size in sizes.items() if size is not None}
    typical = sum(known.values()) / len(known) if known else 1.0
    return {broker: known.get(broker, typical) or 1.0 for broker in promise.brokers}
