"""Turn what the model went through into what a reader wants to know."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import numpy as np

from restow._frozen import frozen
from restow.execute.predict.predicting import objections_to, overfull
from restow.model import ANY_DIR
from restow.plan.schedule.traffic import Way
from restow.rehearse.answer import BrokerRehearsal, Limiting, LogDirRehearsal
from restow.rehearse.noticing import hours_told
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.execute.predict.by_events import EventRun, LeaderChange
    from restow.execute.predict.prediction import TimeRange
    from restow.model import Plan, Snapshot, TopicPartition
    from restow.plan.flow.constants import Calibration
    from restow.plan.flow.forecast import StepTimes
    from restow.plan.flow.loads import ClientLoads
    from restow.plan.flow.movement import Movement
    from restow.rehearse.by_executor import ExecutedRun

_LIMITS = 5
_LEAST_SHARE = 0.02


@frozen
class RehearsedRun:
    """The same facts from the executor or from its schedule."""

    movement: Movement
    seconds: float
    steps: Sequence[StepTimes]
    leader_changes: tuple[LeaderChange, ...]
    endless: tuple[TopicPartition, ...]
    stuck: str | None
    pauses: tuple[str, ...] = ()
    under_replicated: int = 0
    """At most; where only the schedule was run, what moves stays in sync."""

    @classmethod
    def of(cls, events: EventRun, executed: ExecutedRun | None) -> RehearsedRun:
        """Take the executor's run if there is one."""
        if executed is None:
            return cls(
                movement=events.movement,
                seconds=events.run.seconds,
                steps=events.run.steps,
                leader_changes=tuple(events.leader_changes),
                endless=events.run.endless,
                stuck=events.run.stuck,
            )
        outcome = executed.outcome
        stuck = None if executed.is_done or outcome is None else outcome.reason or outcome.ending.value
        return cls(
            movement=executed.movement,
            seconds=executed.seconds if executed.is_done else inf,
            steps=executed.steps,
            leader_changes=tuple(executed.cluster.leader_changes),
            endless=tuple(executed.movement.endless()) if outcome is None else (),
            stuck=stuck,
            pauses=tuple(why for _, why in executed.pauses),
            under_replicated=executed.most_under_replicated,
        )

    def moment_of(self, share: float) -> float:
        """Return when this share of all bytes has been received."""
        links, history = self.movement.links, self.movement.history
        into = [links.of(way, broker) for way in (Way.RECEIVED, Way.WITHIN) for broker in links.brokers]
        wanted = share * float(self.movement.flows.link_bytes[into].sum())
        total = last_s = 0.0
        for at_s, rates in history.points():
            passed = float(rates[into].sum()) * (at_s - last_s)
            if passed and total + passed >= wanted:
                return last_s + (at_s - last_s) * (wanted - total) / passed
            total, last_s = total + passed, at_s
        return last_s


def limiting_told(movement: Movement, seconds: float) -> tuple[Limiting, ...]:
    """Return what held copies back longest, as shares of the whole time."""
    if not 0 < seconds < inf:
        return ()
    flows = movement.flows
    found = [
        (float(flows.held_s[link]), movement.say(int(link))) for link in flows.held_s.argsort()[::-1][:20]
    ]
    found.append((flows.own_s, "one fetch at a time: its size over the round trip"))
    found.append((flows.idle_s, "nothing is copied: controllers decide, hours forbid, elections are held"))
    shares = [Limiting(what=what, share=min(1.0, held_s / seconds)) for held_s, what in found]
    told = sorted((each for each in shares if each.share >= _LEAST_SHARE), key=lambda each: -each.share)
    return tuple(told[:_LIMITS])


def brokers_told(movement: Movement, *, known: bool) -> tuple[BrokerRehearsal, ...]:
    """Return the brokers that copy something, with their rates over time."""
    links, flows, history = movement.links, movement.flows, movement.history
    by_link = history.rates_by_link().astype(np.float64)
    hours = hours_told(movement)
    found = []
    for broker in links.brokers:
        out, into, within = (links.of(way, broker) for way in (Way.SENT, Way.RECEIVED, Way.WITHIN))
        if not flows.link_bytes[[out, into, within]].any():
            continue
        received, sent = (by_link[into] + by_link[within]).tolist(), by_link[out].tolist()
        found.append(
            BrokerRehearsal(
                broker=broker,
                received_bytes=int(flows.link_bytes[into]),
                sent_bytes=int(flows.link_bytes[out]),
                within_bytes=int(flows.link_bytes[within]),
                most_in=float(flows.most_rates[into]),
                most_out=float(flows.most_rates[out]),
                clients_in=links.client_rate(Way.RECEIVED, broker) if known else None,
                clients_out=links.client_rate(Way.SENT, broker) if known else None,
                rates=tuple(zip(history.at_s, received, sent, strict=True)),
                hours=hours[broker],
            )
        )
    return tuple(found)


def _changed_dirs(snapshot: Snapshot, movement: Movement, fill: float) -> Iterator[tuple[int, int | None]]:
    """Yield the numbers of log dirs whose contents change, each with the bytes that it may hold."""
    totals = {(b.id, each.path): each.total_bytes for b in snapshot.brokers for each in b.log_dirs}
    higher, other = movement.peak - movement.before, np.abs(movement.used - movement.before)
    for at in np.flatnonzero(np.maximum(higher, other) >= 1).tolist():
        total = totals.get(movement.links.log_dirs[at])
        yield at, None if total is None else int(total * fill)


def fullest_told(snapshot: Snapshot, movement: Movement, fill: float) -> float | None:
    """Return the most that a log dir whose contents change holds, as a share of what it may hold."""
    changed = _changed_dirs(snapshot, movement, fill)
    return max((float(movement.peak[at]) / limit for at, limit in changed if limit), default=None)


def log_dirs_told(snapshot: Snapshot, movement: Movement, fill: float) -> tuple[LogDirRehearsal, ...]:
    """Return the log dirs whose contents change."""
    history, found = movement.history, []
    used = history.used_by_dir()
    for at, limit in _changed_dirs(snapshot, movement, fill):
        broker, path = movement.links.log_dirs[at]
        found.append(
            LogDirRehearsal(
                broker=broker,
                path=path,
                before_bytes=int(movement.before[at]),
                peak_bytes=int(movement.peak[at]),
                peak_s=float(movement.peak_s[at]),
                after_bytes=int(movement.used[at]),
                limit_bytes=limit,
                used=tuple(zip(history.at_s, used[at].tolist(), strict=True)),
            )
        )
    return tuple(found)


def isr_margin(plan: Plan, snapshot: Snapshot) -> int | None:
    """Return the least number of in-sync replicas beyond `min.insync.replicas` of a partition that moves."""
    margins = []
    for move in plan.moves:
        found, topic = snapshot.partition(move.partition), snapshot.topic.get(move.partition.topic)
        if found is not None and topic is not None:
            in_sync = min(len(found.isr), max(1, len(move.after)))
            margins.append(in_sync - topic.min_insync_replicas)
    return min(margins, default=None)


def problems_told(
    told: RehearsedRun, snapshot: Snapshot, fill: float, seconds: TimeRange, deadline_s: float | None
) -> Iterator[str]:
    """Say what speaks against carrying the plan out so."""
    full = tuple(overfull(snapshot, told.movement, fill))
    found = objections_to(seconds, deadline_s, endless=told.endless, stuck=told.stuck, full=full)
    return (each.why for each in found)


def cost_notes(plan: Plan, snapshot: Snapshot, known: Calibration, loads: ClientLoads) -> Iterator[str]:
    """Say what the answer does not know."""
    if not known.sources:
        yield "no earlier run on this cluster is known, so the constants are guesses and the range is wide"
    if not loads.known:
        yield "without a load model, nothing is written or read meanwhile"
    elif missing := sum(name not in loads.by_partition for name in snapshot.names):
        yield (
            f"the load model has no load of {count(missing, 'partition')} that the plan does not move: "
            "nothing is written to them or read from them meanwhile"
        )
    if known.usual.page_cache_bytes is None:
        yield "the page cache is not known, so all bytes count as read from disk"
    several = {each.id for each in snapshot.brokers if len(each.log_dirs) > 1}
    chosen = sum(
        broker in several
        for move in plan.moves
        for broker in move.adding
        if not move.log_dirs or move.log_dirs[move.after.index(broker)] == ANY_DIR
    )
    if chosen:
        yield (
            f"brokers choose the log dirs of {count(chosen, 'replica')}: each is counted where there are the "
            "fewest, and may come to lie elsewhere"
        )
