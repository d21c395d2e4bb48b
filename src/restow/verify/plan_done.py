"""Check whether a plan is done, with nothing left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from restow.model import ANY_DIR, Check, CheckOutcome, Verdict
from restow.plan.drift import REBASE, differences, ids_of, remade
from restow.plan.judge.waves import violations_of
from restow.plan.schedule.schedule import steps_of
from restow.sizes import some
from restow.verify.evidence import fails, holds, none_of, unknown
from restow.verify.promises_kept import promise_checks

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from restow.model import BrokerId, Move, Partition, Plan, Snapshot

Throttle: TypeAlias = tuple[str, str, str]
""""broker" or "topic", its name, and the name of the config."""

_THROTTLES = ("throttled", "replica.alter.log.dirs.io.max.bytes.per.second")
_GO_ON = "let it go on: restow watch, or restow resume if its executor is gone"
_CARRY_OUT = "execute the plan, or resume its run"
_RESUME = f"resume its run; without one, {REBASE}"


def verify(plan: Plan, snapshot: Snapshot, ours: Collection[Throttle] | None = None) -> Verdict:
    """Check whether a plan is done, by a snapshot that was taken after it.

    The promises of the plan come first, then its moves, each check with its evidence:

        verdict = restow.verify(plan, cluster.snapshot())
        assert verdict.holds

    `ours` are the throttles that are still set according to the run journals; None without a journal.
    """
    subject = f"the plan {plan.title!r} is done" if plan.title else "the plan is done"
    same = _same_cluster(plan, snapshot)
    checks = (
        *promise_checks(plan, snapshot),
        *_moves_done(plan, snapshot),
        plan_sound(plan),
        _no_throttles(plan, snapshot, ours),
    )
    if same.outcome is not CheckOutcome.HOLDS:
        checks = tuple(unknown(check.name, "not looked at: this is another cluster") for check in checks)
    return Verdict(subject=subject, checks=(same, *checks))


def plan_sound(plan: Plan) -> Check:
    """Whether the judge finds nothing broken in the plan itself."""
    return none_of(
        "plan sound",
        [f"{each.where}: {each.rule} ({each.what})" for each in violations_of(plan)],
        "rule",
        good="the judge finds nothing broken in it",
        advice="make the plan again: it was changed, or made by another tool",
    )


def _moves_done(plan: Plan, snapshot: Snapshot) -> Iterator[Check]:
    """Check the moves of the plan; nothing to check if none of its partitions exist."""
    strange = remade(plan.topic_ids, ids_of(snapshot))
    found = [(move, snapshot.partition(move.partition)) for move in plan.moves]
    is_same = [(move, each) for move, each in found if move.partition.topic not in strange]
    there = [(move, each) for move, each in is_same if each is not None]
    gone = [str(move.partition) for move, each in is_same if each is None]
    gone += [
        f"{move.partition} (of a topic that was made anew)"
        for move, _ in found
        if move.partition.topic in strange
    ]
    yield none_of(
        "partitions exist",
        gone,
        "partition",
        good=f"all {len(found):,} are there",
        advice=f"topics were deleted; if the rest is still wanted, {REBASE}",
    )
    advice = _to_do(plan, snapshot, there)
    for check in _places_checks(there, snapshot, advice):
        if found and not there:
            yield unknown(check.name, "not looked at: none of the plan's partitions is there")
        else:
            yield check


def _to_do(plan: Plan, snapshot: Snapshot, there: list[tuple[Move, Partition]]) -> str:
    """Say what brings the rest about: a changed cluster refuses the plan, and a run leaves out what others
    have changed.
    """
    if not differences(plan, snapshot):
        return _CARRY_OUT
    changed = [
        str(move.partition) for move, each in there if not each.moving and not _on_the_way(plan, move, each)
    ]
    if not changed:
        return _RESUME
    return f"somebody else has changed {some(changed)}, which a run leaves out. If they are to move, {REBASE}"


def _on_the_way(plan: Plan, move: Move, partition: Partition) -> bool:
    """Return whether a partition is where a run of the plan may have left it."""
    if set(partition.replicas) == set(move.before):
        return True
    return partition.replicas in {step.after for step in steps_of(move, plan.limits.extra_copies)}


def _places_checks(there: list[tuple[Move, Partition]], snapshot: Snapshot, to_do: str) -> Iterator[Check]:
    yield none_of(
        "replicas in place",
        [_elsewhere(move, each) for move, each in there if each.replicas != move.after],
        "partition",
        good=f"{len(there):,} partitions have the planned replicas in the planned order",
        advice=to_do,
    )
    yield none_of(
        "nothing moves",
        [str(move.partition) for move, each in there if each.moving],
        "partition",
        good="no replica is being added or removed",
        advice=_GO_ON,
    )
    yield none_of(
        "all in sync",
        [str(move.partition) for move, each in there if set(each.isr) != set(each.replicas)],
        "partition",
        good="every replica is in sync",
        advice="wait for the replicas to catch up, or see what is wrong with their brokers",
    )
    yield _min_insync(there, snapshot)
    yield none_of(
        "first replicas lead",
        [str(move.partition) for move, each in there if each.leader != each.replicas[0]],
        "partition",
        good="every leader is the preferred one",
        advice="let the first replicas be elected: restow doctor --fix",
    )
    yield _log_dirs(there, snapshot, to_do)


def _same_cluster(plan: Plan, snapshot: Snapshot) -> Check:
    name = "the plan's cluster"
    if plan.cluster_id == snapshot.cluster_id:
        return holds(name, snapshot.cluster_id)
    evidence = f"{snapshot.cluster_id}, not {plan.cluster_id}"
    return fails(name, evidence, "connect to the cluster that the plan was made for")


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


def _log_dirs(there: list[tuple[Move, Partition]], snapshot: Snapshot, to_do: str) -> Check:
    """Check that replicas are in the log dirs of the plan, and none is moving to another."""
    wrong, silent = [], []
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
                silent.append(broker)
            elif broker not in lies:
                wrong.append(f"{move.partition} is not on broker {broker}, where it belongs in {path}")
            elif lies[broker] != path:
                wrong.append(f"{move.partition} on broker {broker} lies in {lies[broker]}, not in {path}")
    if silent and not wrong:
        return unknown(
            "log dirs",
            f"no word from broker {some(sorted(set(silent)))}",
            "see why it does not tell about its disks",
        )
    names_some = any(path != ANY_DIR for move, _ in there for path in move.log_dirs)
    good = "every replica lies where the plan wants it" if names_some else "the plan names none"
    goes_on = any(each.moving or _places(each, future=True) for _, each in there)
    return none_of("log dirs", wrong, "replica", good=good, advice=_GO_ON if goes_on else to_do)


def _places(partition: Partition, *, future: bool) -> dict[BrokerId, str]:
    return {copy.broker: copy.log_dir for copy in partition.copies if copy.future is future}


def _no_throttles(plan: Plan, snapshot: Snapshot, ours: Collection[Throttle] | None) -> Check:
    """Check that no throttle of ours is left. Without a journal, all that the plan needed count as ours."""
    known = ours is not None
    if unseen := [each for each in snapshot.denied if each.startswith("DESCRIBE_CONFIGS")]:
        return unknown("no throttles left", f"we may not look: {some(unseen)}", "grant it, and ask again")
    owned = ours if ours is not None else set(_needed(plan, snapshot))
    found = list(_throttles(plan, snapshot))
    others = [_described(each) for each in found if each not in owned]
    return none_of(
        "no throttles left",
        [_described(each) for each in found if each in owned],
        "throttle",
        good=f"none of the plan; others have set {some(others)}" if others else "none is set",
        advice="bring them back: restow doctor --fix"
        if known
        else "no journal knows who set them; if nobody needs them, restow doctor says how to remove them",
    )


def _throttles(plan: Plan, snapshot: Snapshot) -> Iterator[Throttle]:
    """Yield the throttles of all brokers, and of the plan's topics."""
    for broker in snapshot.brokers:
        yield from (("broker", str(broker.id), key) for key in sorted(broker.configs) if _limits(key))
    for name in sorted({move.partition.topic for move in plan.moves} & snapshot.topic.keys()):
        configs = snapshot.topic[name].configs
        yield from (("topic", name, key) for key in sorted(configs) if _limits(key) and configs[key])


def _needed(plan: Plan, snapshot: Snapshot) -> Iterator[Throttle]:
    """Yield throttles that the plan may have set: on its brokers, and lists with its partitions."""
    brokers = {str(broker) for move in plan.moves for broker in (*move.before, *move.after)}
    moved = {(move.partition.topic, str(move.partition.partition)) for move in plan.moves}
    for of, name, key in _throttles(plan, snapshot):
        if of == "broker":
            if name in brokers:
                yield of, name, key
            continue
        listed = snapshot.topic[name].configs[key].split(",")
        if any((name, entry.partition(":")[0].strip()) in moved for entry in listed):
            yield of, name, key


def _limits(key: str) -> bool:
    return any(part in key for part in _THROTTLES)


def _described(throttle: Throttle) -> str:
    of, name, key = throttle
    return f"{key} of {of} {name}"
