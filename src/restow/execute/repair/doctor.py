"""Find what is wrong on a cluster, and fix what is ours to fix.

The search is pure. Leftovers of our own runs can be fixed, because their journals hold the values from
before. Settings and moves of other tools are reported with a remedy, and left alone.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.execute.journal.ledger import still_moving
from restow.execute.progress.outcome import Ending
from restow.execute.progress.status import RunEvent
from restow.execute.run.elections import Elections, may_be_elected
from restow.execute.run.lock import claimed, holder_of, other_at_it
from restow.execute.run.options import RunOptions
from restow.execute.run.start import RunContext, begun, take_back_run
from restow.execute.throttle.throttles import RATES, REPLICAS, Setting
from restow.model import Plan
from restow.sizes import count, some
from restow.snapshot import capture

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from restow.execute.journal.runs import Run, Runs
    from restow.execute.progress.status import RunListener
    from restow.model import Snapshot, TopicPartition


_OVER = {each.value for each in (Ending.DONE, Ending.IN_PART, Ending.CANCELLED)}
"""Outcomes of runs that left no move under way."""


class FindingKind(Enum):
    """The kinds of findings."""

    JOURNAL = "journal that cannot be relied on"
    OPEN_RUN = "run without an end"
    THROTTLES_LEFT = "throttles left by a run"
    OTHER_RUN = "run of somebody else"
    THROTTLE = "throttle nobody needs"
    MOVE = "move without an owner"
    LEFTOVER = "move that does not end"
    SILENT = "broker that does not answer"
    STRAY = "replica nobody knows"
    FUTURE = "replica on its way to another log dir"
    UNDER_REPLICATED = "under-replicated"
    OFFLINE = "offline"
    LEADER = "preferred leader not in place"
    RACKS = "replicas share a rack"


@frozen
class Finding:
    """One problem. `remedy` says what `restow doctor --fix` would do, or what the owner could do."""

    kind: FindingKind
    what: str
    evidence: str
    remedy: str
    run: str | None = None
    """The run of ours that has to be rolled back to fix it."""
    partition: TopicPartition | None = None

    @property
    def can_be_fixed(self) -> bool:
        return self.run is not None or self.kind is FindingKind.LEADER

    def document(self) -> dict[str, object]:
        return {
            "finding": self.kind.value,
            "what": self.what,
            "evidence": self.evidence,
            "remedy": self.remedy,
            "fixable": self.can_be_fixed,
        }


def examine(
    snapshot: Snapshot, runs: Iterable[Run], active: str | None = None, other: str | None = None
) -> tuple[Finding, ...]:
    """Return all findings. `active` is the run in progress, whose moves and throttles are not findings.

    `other` is who executes a run from another machine or folder: moves that no journal knows are theirs.
    """
    all_runs = tuple(runs)
    open_runs = [run for run in all_runs if not run.ledger.is_settled and run.name != active]
    current = [run for run in all_runs if run.name == active]
    return (
        *_open_runs(snapshot, open_runs),
        *_throttles(snapshot, (*open_runs, *current), other),
        *_moves(snapshot, (*open_runs, *current), other),
        *_silent(snapshot),
        *_replicas(snapshot),
        *_states(snapshot),
        *_racks(snapshot),
    )


def journals(wrong: Mapping[str, str], runs: Runs) -> Iterator[Finding]:
    """Report journals that are damaged or belong to another cluster; `wrong` is keyed by run name."""
    for name, why in wrong.items():
        yield Finding(
            kind=FindingKind.JOURNAL,
            what=runs.path(name),
            evidence=why,
            remedy="no run begins while it is there. What it may have left is shown as somebody else's; when "
            "that is in order, move the folder away",
        )


def settings_of(snapshot: Snapshot) -> dict[Setting, str]:
    """Return every throttle config of a broker or a topic."""
    found = {
        Setting("broker", str(broker.id), key): broker.configs[key]
        for broker in snapshot.brokers
        for key in RATES
        if key in broker.configs
    }
    found.update(
        {
            Setting("topic", topic.name, key): topic.configs[key]
            for topic in snapshot.topics
            for key in REPLICAS
            if topic.configs.get(key)
        }
    )
    return found


def _open_runs(snapshot: Snapshot, runs: Iterable[Run]) -> Iterator[Finding]:
    for run in runs:
        ledger = run.ledger
        moving, settings = still_moving(ledger, snapshot), count(len(ledger.ours), "throttle setting")
        if ledger.outcome in _OVER and not ledger.in_progress:
            yield Finding(
                kind=FindingKind.THROTTLES_LEFT,
                what=f"run {run.name}",
                evidence=f"it ended: {ledger.outcome}, and could not bring back {settings}: "
                + some(f"{each.key} of {each.of} {each.name}" for each in sorted(ledger.ours)),
                remedy="bring the settings back; nothing else is left to do",
                run=run.name,
            )
            continue
        said = "was killed" if ledger.outcome is None else f"stopped: {ledger.outcome}"
        yield Finding(
            kind=FindingKind.OPEN_RUN,
            what=f"run {run.name}",
            evidence=f"it {said}; {count(len(moving), 'move')} under way, {settings} on",
            remedy="take back what is under way and bring the settings back; or `restow resume` to go on",
            run=run.name,
        )


def _throttles(snapshot: Snapshot, runs: Iterable[Run], other: str | None) -> Iterator[Finding]:
    """Report throttles that no move needs and no run has set. Those of open runs go with their run."""
    ours = {setting for run in runs for setting in run.ledger.ours}
    busy_topics, busy_brokers = _busy(snapshot)
    for setting, value in sorted(settings_of(snapshot).items()):
        needed = setting.name in (busy_topics if setting.of == "topic" else busy_brokers)
        if setting in ours or needed:
            continue
        yield Finding(
            kind=FindingKind.THROTTLE,
            what=f"{setting.key} of {setting.of} {setting.name}",
            evidence=f"it is {value!r}, nothing moves there, and no journal of ours knows it",
            remedy="somebody else set it, so it stays. To remove it: kafka-configs --alter "
            f"--entity-type {setting.of}s --entity-name {setting.name} --delete-config {setting.key}"
            if other is None
            else f"it may be of a run that is alive: {other}. Look again when that run has ended",
        )


def _silent(snapshot: Snapshot) -> Iterator[Finding]:
    """Report listed brokers that did not describe their log dirs, unless we may not ask for them."""
    if snapshot.denied:
        return
    for broker in snapshot.unanswered:
        yield Finding(
            kind=FindingKind.SILENT,
            what=f"broker {broker}",
            evidence="the cluster lists it as alive, but it did not say what is in its log dirs",
            remedy="see whether it runs and can be reached from here. If it has just died, look again when "
            "the controller has noticed",
        )


def _busy(snapshot: Snapshot) -> tuple[set[str], set[str]]:
    """Return the topics and the brokers on which something is moving."""
    topics: set[str] = set()
    brokers: set[str] = set()
    for name, partition in snapshot.all_partitions():
        futures = {copy.broker for copy in partition.copies if copy.future}
        if partition.moving or futures:
            topics.add(name.topic)
            brokers.update(str(broker) for broker in (*partition.replicas, *futures))
    return topics, brokers


def _moves(snapshot: Snapshot, runs: Iterable[Run], other: str | None) -> Iterator[Finding]:
    ours = {name for run in runs for name in run.ledger.in_progress}
    theirs = [name for name, each in snapshot.all_partitions() if each.moving and name not in ours]
    if theirs and other is not None:
        yield Finding(
            kind=FindingKind.OTHER_RUN,
            what=other,
            evidence=f"it is alive; no journal of ours knows {count(len(theirs), 'move')} under way: "
            + some(theirs),
            remedy="leave it alone until it has ended; `restow watch` shows how far its moves are",
        )
        return
    for name, partition in snapshot.all_partitions():
        if not partition.moving or name in ours:
            continue
        arrived = set(partition.adding) <= set(partition.isr)
        yield _of_partition(
            FindingKind.LEFTOVER if arrived else FindingKind.MOVE,
            name,
            evidence=f"replicas {list(partition.replicas)}, adding {list(partition.adding)}, removing "
            f"{list(partition.removing)}" + (", and all that are added are in sync" if arrived else ""),
            remedy="no journal of ours knows it. `restow watch` shows how far it is; whoever began it can "
            "cancel it, or `restow reassign --cancel`",
        )


def _of_partition(kind: FindingKind, name: TopicPartition, *, evidence: str, remedy: str) -> Finding:
    return Finding(kind=kind, what=str(name), evidence=evidence, remedy=remedy, partition=name)


def _replicas(snapshot: Snapshot) -> Iterator[Finding]:
    for name, partition in snapshot.all_partitions():
        for copy in partition.copies:
            if copy.future:
                yield Finding(
                    kind=FindingKind.FUTURE,
                    what=f"{name} on broker {copy.broker}",
                    evidence=f"{copy.size_bytes:,} bytes in {copy.log_dir}, {copy.lag_messages:,} behind",
                    remedy="if nobody is moving it: ask for the log dir that it lies in, which ends it",
                    partition=name,
                )
            elif copy.broker not in partition.replicas:
                yield Finding(
                    kind=FindingKind.STRAY,
                    what=f"{name} on broker {copy.broker}",
                    evidence=f"{copy.size_bytes:,} bytes in {copy.log_dir}, but its replicas are "
                    f"{list(partition.replicas)}",
                    remedy="brokers remove such replicas by themselves; if it stays, restart that broker",
                    partition=name,
                )


def _states(snapshot: Snapshot) -> Iterator[Finding]:
    for name, partition in snapshot.all_partitions():
        missing = [broker for broker in partition.replicas if broker not in partition.isr]
        dead = [broker for broker in missing if broker not in snapshot.broker]
        if partition.leader is None:
            yield _of_partition(
                FindingKind.OFFLINE,
                name,
                evidence=f"no leader; replicas {list(partition.replicas)}, of which {dead} are not there",
                remedy="bring one of its in-sync replicas back",
            )
        elif missing and not partition.moving:
            yield _of_partition(
                FindingKind.UNDER_REPLICATED,
                name,
                evidence=f"{missing} of {list(partition.replicas)} are not in sync"
                + (f"; {dead} are not there" if dead else ""),
                remedy="bring the broker back; if it is gone for good, `restow plan replace "
                f"{dead[0]}:NEW` or `restow plan drain {dead[0]}`"
                if dead
                else "wait, or look at the log of that broker",
            )
        elif may_be_elected(partition) and not partition.moving:
            yield _of_partition(
                FindingKind.LEADER,
                name,
                evidence=f"broker {partition.leader} leads it, and not {partition.replicas[0]}",
                remedy=f"elect broker {partition.replicas[0]}",
            )


def _racks(snapshot: Snapshot) -> Iterator[Finding]:
    racks = {broker.id: broker.rack for broker in snapshot.brokers if broker.rack is not None}
    there = len(set(racks.values()))
    for name, partition in snapshot.all_partitions():
        known: list[str] = [racks[broker] for broker in partition.replicas if broker in racks]
        if partition.moving or len(known) < len(partition.replicas):
            continue
        if len(set(known)) < min(len(known), there):
            yield _of_partition(
                FindingKind.RACKS,
                name,
                evidence=f"{len(known)} replicas, {there} racks, and all in {', '.join(sorted(set(known)))}",
                remedy="spread it over the racks: restow plan fix-racks",
            )


async def diagnose(world: RunContext) -> tuple[Finding, ...]:
    """Return the findings without changing anything."""
    runs = await world.runs()
    holder, other = holder_of(world.disk, runs.folder), await other_at_it(world, runs)
    return await _look(world, runs, None if holder is None else holder.run, other)


async def fix(world: RunContext, watcher: RunListener) -> tuple[Finding, ...]:
    """Fix what can be fixed, and return the findings that remain."""
    runs = await world.runs()
    name = runs.new(world.clock)
    async with claimed(world, runs, name) as mark:
        await mark.confirm(world, watcher)
        found = await _look(world, runs)
        for run in dict.fromkeys(each.run for each in found if each.run is not None):
            await take_back_run(world, runs.get(run), watcher)
        await _elect(world, name, watcher)
        return await _look(world, runs)


def repaired(events: Iterable[RunEvent]) -> tuple[str, ...]:
    """Say what a fix has done, by the events that it told."""
    told = {
        "throttle": lambda facts: (
            f"brought back {facts['key']} of {facts['of']}"
            + (" (removed)" if facts["value"] is None else f" (to {facts['value']})")
        ),
        "cancelled": lambda facts: f"took back the move of {facts['partition']}",
        "elected": lambda facts: f"elected broker {facts['leader']} for {facts['partition']}",
    }
    return tuple(told[each.kind](each.facts) for each in events if each.kind in told)


async def _look(
    world: RunContext, runs: Runs, active: str | None = None, other: str | None = None
) -> tuple[Finding, ...]:
    """Return all findings. A damaged journal is a finding; the other journals still show what is ours."""
    snapshot = await capture(world.admin, world.clock)
    sound, wrong = runs.sound(snapshot.cluster_id)
    return (*journals(wrong, runs), *examine(snapshot, sound, active, other))


async def _elect(world: RunContext, name: str, watcher: RunListener) -> None:
    runs = await world.runs()
    snapshot = await capture(world.admin, world.clock)
    out_of_place = {each.partition for each in examine(snapshot, ()) if each.kind is FindingKind.LEADER}
    wanted = {which: each.replicas for which, each in snapshot.all_partitions() if which in out_of_place}
    if not wanted:
        return
    cluster_id = (await world.admin.describe_cluster()).cluster_id
    plan = Plan(cluster_id=cluster_id, created_ms=world.clock.now_ms(), moves=(), title="doctor")

    def tell(kind: str, **facts: object) -> None:
        watcher.event(RunEvent(at_ms=world.clock.now_ms(), kind=kind, facts=facts))

    with begun(world, runs, name, plan, snapshot=snapshot) as book:
        options = RunOptions()
        elections = Elections(world.admin, world.clock, book, wanted, options.elections_at_once, tell)
        elections.line_up(wanted)
        while not elections.over:
            await elections.hold()
            await world.clock.sleep(options.look_every_s)
        book.write("ended", outcome="done", reason="")
