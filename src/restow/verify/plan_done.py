"""Is a plan done, with nothing left behind?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.model import ANY_DIR, Check, Outcome, Verdict
from restow.verify.evidence import none_of, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from restow.model import BrokerId, Move, Partition, Plan, Snapshot

_THROTTLES = ("throttled", "replica.alter.log.dirs.io.max.bytes.per.second")
_GO_ON = "let it go on: restow watch, or restow resume if its executor is gone"


def verify_plan(plan: Plan, snapshot: Snapshot) -> Verdict:
    """What should hold of a cluster on which this plan was carried out. Nothing outside the plan counts,
    except throttles, which nobody needs when nothing moves."""
    found = [(move, snapshot.partition(move.partition)) for move in plan.moves]
    there = [(move, partition) for move, partition in found if partition is not None]
    gone = [str(move.partition) for move, partition in found if partition is None]
    return Verdict(
        subject=f"the plan {plan.title!r} is done" if plan.title else "the plan is done",
        checks=(
            _same_cluster(plan, snapshot),
            none_of(
                "partitions exist",
                gone,
                "partition",
                good=f"all {len(found):,} are there",
                advice="topics were deleted; rebase the plan if it is still wanted",
            ),
            none_of(
                "replicas in place",
                [_elsewhere(move, each) for move, each in there if each.replicas != move.after],
                "partition",
                good=f"{len(there):,} partitions have the planned replicas in the planned order",
                advice="execute the plan, or resume its run",
            ),
            none_of(
                "nothing moves",
                [str(move.partition) for move, each in there if each.moving],
                "partition",
                good="no replica is being added or removed",
                advice=_GO_ON,
            ),
            none_of(
                "all in sync",
                [str(move.partition) for move, each in there if set(each.isr) != set(each.replicas)],
                "partition",
                good="every replica is in sync",
                advice="wait for the replicas to catch up, or see what is wrong with their brokers",
            ),
            _min_insync(there, snapshot),
            none_of(
                "first replicas lead",
                [str(move.partition) for move, each in there if each.leader != each.replicas[0]],
                "partition",
                good="every leader is the preferred one",
                advice="let the first replicas be elected: restow doctor --fix",
            ),
            _directories(there, snapshot),
            none_of(
                "no throttles left",
                list(_throttles(plan, snapshot)),
                "throttle",
                good="no broker and no topic of the plan is throttled",
                advice="if nobody needs them: restow doctor --fix",
            ),
        ),
    )


def _same_cluster(plan: Plan, snapshot: Snapshot) -> Check:
    same = plan.cluster_id == snapshot.cluster_id
    return Check(
        name="the plan's cluster",
        outcome=Outcome.HOLDS if same else Outcome.FAILS,
        evidence=snapshot.cluster_id if same else f"{snapshot.cluster_id}, not {plan.cluster_id}",
        advice="connect to the cluster that the plan was made for",
    )


def _elsewhere(move: Move, partition: Partition) -> str:
    return f"{move.partition} at {list(partition.replicas)} instead of {list(move.after)}"


def _min_insync(there: list[tuple[Move, Partition]], snapshot: Snapshot) -> Check:
    below = [
        f"{move.partition} with {len(each.isr)} of {least}"
        for move, each in there
        if len(each.isr) < (least := snapshot.topic[move.partition.topic].min_insync_replicas)
    ]
    return none_of(
        "writable",
        below,
        "partition",
        good="every ISR is at least min.insync.replicas",
        advice="bring the missing brokers back",
    )


def _directories(there: list[tuple[Move, Partition]], snapshot: Snapshot) -> Check:
    """Where the plan names a directory, the replica lies there, and no copy is on its way to another."""
    wrong, unknown = [], []
    for move, partition in there:
        lies = _places(partition, future=False)
        wrong += [
            f"{move.partition} on broker {broker} is on its way to {path}"
            for broker, path in _places(partition, future=True).items()
        ]
        for broker, path in zip(move.after, move.log_dirs, strict=False):
            if path == ANY_DIR:
                continue
            if broker in snapshot.unanswered or broker not in snapshot.broker:
                unknown.append(broker)
            elif lies.get(broker) != path:
                wrong.append(f"{move.partition} on broker {broker} lies in {lies.get(broker)}, not in {path}")
    if unknown and not wrong:
        return Check(
            name="directories",
            outcome=Outcome.UNKNOWN,
            evidence=f"no word from broker {some(sorted(set(unknown)))}",
            advice="see why it does not tell about its disks",
        )
    return none_of(
        "directories", wrong, "replica", good="every replica lies where the plan wants it", advice=_GO_ON
    )


def _places(partition: Partition, *, future: bool) -> dict[BrokerId, str]:
    return {copy.broker: copy.log_dir for copy in partition.copies if copy.future is future}


def _throttles(plan: Plan, snapshot: Snapshot) -> Iterator[str]:
    """All brokers count, for a rate may be left on any; of topics, those of the plan."""
    for broker in snapshot.brokers:
        yield from (f"{name} of broker {broker.id}" for name in _set(broker.configs))
    for name in sorted({move.partition.topic for move in plan.moves} & snapshot.topic.keys()):
        yield from (f"{key} of topic {name}" for key in _set(snapshot.topic[name].configs))


def _set(configs: Mapping[str, str]) -> list[str]:
    return [name for name in sorted(configs) if any(part in name for part in _THROTTLES) and configs[name]]
