"""The ledger: the sum of a journal's entries (configs set, steps in progress, steps done).

    began      the plan, and who executes it              resumed    who executes it from here on
    throttle   configs about to be set, with prior values      throttled    which of them failed
    submit     steps about to be submitted                submitted  which of them were refused
    dirs       replicas about to be sent to another log dir
    finished   steps that have completed                  dropped    a partition that is not moved, and why
    found      partitions that another tool has already moved to the plan's target
    cancel     steps about to be cancelled                cancelled  steps that were cancelled
    elect      partitions about to be led by their first replica, and their leaders so far
    ended      the outcome

Every change is announced before it is made. The last announcement of a killed run may or may not have been
carried out, and the ledger allows for both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from restow.errors import RestowError
from restow.execute.journal.journal import DamagedJournal, JournalEntry
from restow.execute.predict.prediction import Prediction, prediction_of
from restow.execute.throttle.throttles import RATES, REPLICAS, Setting
from restow.model import Step, fields
from restow.plan.files.text import partition_of, plan_from, step_document, step_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from restow.execute.journal.journal import Journal
    from restow.model import BrokerId, Partition, Plan, Snapshot, TopicPartition


LAST_TURN = 10**12


class NotARun(RestowError):
    """The journal's first entry is not the beginning of a run."""


@dataclass(frozen=True, kw_only=True)
class RunLedger:
    """The state of a run according to its journal."""

    plan: Plan
    turn: int = 0
    """Increases with every run that begins or is resumed, even if the clock is set back."""
    undo_of: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of the plan's topics when the run began. A topic with another id was created anew."""
    prior: Mapping[Setting, str | None] = field(default_factory=dict)
    """The value that each config set by this run would have without it."""
    ours: Mapping[Setting, tuple[str, ...]] = field(default_factory=dict)
    """The values that the run may have set each config to. Restored configs are in neither mapping."""
    told: Mapping[Setting, str | None] = field(default_factory=dict)
    """The value that each config was set to last, restored ones included, unless a later change is open."""
    borrowed: frozenset[Setting] = frozenset()
    """Configs that belonged to another run when we first set them: their prior value may lose its owner."""
    in_progress: Mapping[TopicPartition, Step] = field(default_factory=dict)
    finished: tuple[Step, ...] = ()
    submitted: frozenset[TopicPartition] = frozenset()
    """Partitions that this run has ever submitted. It has changed no others."""
    found: frozenset[TopicPartition] = frozenset()
    """Partitions that another tool has already moved to the plan's target."""
    dropped: Mapping[TopicPartition, str] = field(default_factory=dict)
    taken: frozenset[TopicPartition] = frozenset()
    """Dropped partitions that another tool has changed, or whose topic is another one now."""
    outcome: str | None = None
    """The outcome; None while the run is active, or if it was killed."""
    prediction: Prediction | None = None
    """What was predicted when the run began, or was resumed last; None in journals of old versions."""
    took_s: float | None = None
    """How long the run took since then; None if it is not done."""
    steered: tuple[str, ...] = ()
    """What an operator has changed since then, by `restow control`."""
    held: str = ""
    """Why a guard paused the run meanwhile; empty if none did."""
    waited: str = ""
    """How long nothing could move meanwhile, and why; empty if something always could."""
    copied: tuple[tuple[float, float], ...] = ()
    """Seconds since then, and the bytes copied until that moment; empty until the run has ended."""

    @property
    def is_settled(self) -> bool:
        """Return whether the run has left no throttle on the cluster, and no reassignment in progress."""
        return self.outcome is not None and not self.ours and not self.in_progress

    def is_open(self, alive: Iterable[BrokerId]) -> bool:
        """Return whether something is left that can be seen to while these brokers are alive.

        The settings of a dead broker cannot be changed, and slow nothing down. They wait until it is back.
        """
        up = {str(broker) for broker in alive}
        reachable = [each for each in self.ours if each.of != "broker" or each.name in up]
        return self.outcome is None or bool(self.in_progress) or bool(reachable)

    @property
    def arrived(self) -> frozenset[TopicPartition]:
        """Return the partitions that have come to the end of their moves."""
        reached = {step.partition: step.after for step in self.finished}
        return frozenset(
            move.partition for move in self.plan.moves if reached.get(move.partition) == move.after
        )

    @property
    def given_up(self) -> list[Step]:
        """The rest of the moves that were submitted and have neither arrived nor are in progress.

        A run that saw old metadata has given them up, and they may have arrived all the same.
        """
        over = {*self.in_progress, *self.found, *self.dropped}
        reached = {step.partition: step.after for step in self.finished}
        return [
            Step(partition=move.partition, before=reached.get(move.partition, move.before), after=move.after)
            for move in self.plan.moves
            if move.partition in self.submitted
            and move.partition not in over
            and reached.get(move.partition) != move.after
        ]

    def after(self, entry: JournalEntry) -> RunLedger:
        """Return the ledger with one more entry."""
        change = _CHANGES.get(entry.kind)
        return self if change is None else change(self, entry.facts)


def ledger_of(entries: Iterable[JournalEntry], where: str) -> RunLedger:
    """Sum up a journal; `where` is its path, for error messages."""
    remaining = iter(entries)
    first = next(remaining, None)
    if first is None or first.kind != "began":
        raise NotARun(
            f"{where}: this journal has no first entry: its run changed nothing, so nothing has to be done"
        )
    entry = first
    try:
        ledger = _began(first.facts, where)
        for entry in remaining:
            ledger = ledger.after(entry)
    except (RestowError, ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise DamagedJournal(
            f"{where}, entry {entry.number}: {entry.kind!r} does not make sense ({error!s:.200}), so what "
            "this run has set and begun is not known. `restow doctor` shows what is left on the cluster; "
            "when that is in order, move the folder away"
        ) from error
    return ledger


def _began(facts: Any, where: str) -> RunLedger:
    return RunLedger(
        plan=plan_from(facts["plan"], f"the plan in {where}"),
        turn=_turn(facts),
        undo_of=_text_or_none(facts.get("undo_of")),
        topic_ids={
            fields.text(name): fields.text(known)
            for name, known in fields.members(facts.get("topic_ids", {})).items()
        },
        prediction=_prediction(facts),
    )


def _prediction(facts: Mapping[str, Any]) -> Prediction | None:
    """Read a prediction; journals of earlier versions have none."""
    told = facts.get("prediction")
    return None if told is None else prediction_of(fields.members(told))


def _setting(triple: Any) -> Setting:
    """Read a setting; refuse one that a run may not change."""
    of, name, key = triple
    keys: Mapping[Any, Sequence[str]] = {"broker": RATES, "topic": REPLICAS}
    if not isinstance(name, str) or key not in keys.get(of, ()) or (of == "broker" and not name.isdecimal()):
        raise ValueError(f"this is no setting of a throttle: {triple!r}")
    return Setting(of, name, key)


def _text_or_none(value: object) -> str | None:
    return fields.optional(value, fields.text)


def _turn(facts: Mapping[str, Any]) -> int:
    """Read the turn of a run; journals of earlier versions have none."""
    return fields.number(facts.get("turn", 0), LAST_TURN)


def has_heard_of(ledger: RunLedger, snapshot: Snapshot) -> bool:
    """Return whether the snapshot is at least as new as the run's last entry.

    Finished steps must have their replicas, and steps in progress must be moving or at either end, with their
    logs in the same places. A broker with older metadata shows neither.
    """
    last = {step.partition: step for step in ledger.finished}

    def may_be(name: TopicPartition, now: Partition) -> bool:
        begun = ledger.in_progress.get(name)
        if begun is None:
            return now.replicas == last[name].after
        if has_extra_logs(begun, (copy.broker for copy in now.copies)):
            return now.replicas == begun.after
        return now.replicas == begun.after or set(now.replicas) == set(begun.before)

    seen = {name: snapshot.partition(name) for name in last.keys() | ledger.in_progress.keys()}
    return all(each is None or each.moving or may_be(name, each) for name, each in seen.items())


def still_moving(ledger: RunLedger, snapshot: Snapshot) -> list[TopicPartition]:
    """Return the steps in progress that the cluster is still at: others ended while nobody was watching."""

    def moves(name: TopicPartition) -> bool:
        now = snapshot.partition(name)
        return now is not None and (now.moving or any(copy.future for copy in now.copies))

    return [name for name in ledger.in_progress if moves(name)]


def has_extra_logs(step: Step, brokers: Iterable[BrokerId]) -> bool:
    """Return whether one of these brokers, which have its log, is new in this step.

    If nothing moves then, the step has arrived, whatever older metadata says, or the log is not deleted yet.
    """
    return not set(step.after).difference(step.before).isdisjoint(brokers)


def _throttle(ledger: RunLedger, facts: Any) -> RunLedger:
    prior, ours, told = dict(ledger.prior), dict(ledger.ours), dict(ledger.told)
    for each in facts["changes"]:
        setting = _setting(each["setting"])
        told.pop(setting, None)
        prior[setting] = _text_or_none(each["prior"])
        value = _text_or_none(each["value"])
        if value is not None and value != each["prior"]:
            ours[setting] = tuple(dict.fromkeys((*ours.get(setting, ()), value)))
        else:
            ours.setdefault(setting, ())
    borrowed = ledger.borrowed.union(_setting(each) for each in facts.get("borrowed", ()))
    return replace(ledger, prior=prior, ours=ours, told=told, borrowed=borrowed)


def _throttled(ledger: RunLedger, facts: Any) -> RunLedger:
    """Take over the values that were set; forget the configs that were restored."""
    prior, ours, told = dict(ledger.prior), dict(ledger.ours), dict(ledger.told)
    for each in facts["arrived"]:
        setting, value = _setting(each["setting"]), _text_or_none(each["value"])
        told[setting] = value
        if value == prior.get(setting):
            ours.pop(setting, None)
            prior.pop(setting, None)
        else:
            ours[setting] = () if value is None else (value,)
    return replace(ledger, prior=prior, ours=ours, told=told, borrowed=ledger.borrowed & ours.keys())


def _submit(ledger: RunLedger, facts: Any) -> RunLedger:
    begun = {step.partition: step for step in map(step_of, facts["steps"])}
    return replace(
        ledger,
        in_progress={**ledger.in_progress, **begun},
        submitted=ledger.submitted | begun.keys(),
        outcome=None,
    )


def _finished(ledger: RunLedger, facts: Any) -> RunLedger:
    steps = tuple(map(step_of, facts["steps"]))
    return replace(
        ledger,
        in_progress=_without(ledger.in_progress, (step.partition for step in steps)),
        finished=(*ledger.finished, *steps),
    )


def _dropped(ledger: RunLedger, facts: Any) -> RunLedger:
    partition = partition_of(facts["partition"])
    return replace(
        ledger,
        in_progress=_without(ledger.in_progress, (partition,)),
        dropped={**ledger.dropped, partition: fields.text(facts["reason"])},
        taken=ledger.taken | {partition} if facts.get("taken") is True else ledger.taken - {partition},
    )


def _found(ledger: RunLedger, facts: Any) -> RunLedger:
    partitions = frozenset(map(partition_of, facts["partitions"]))
    return replace(
        ledger, in_progress=_without(ledger.in_progress, partitions), found=ledger.found | partitions
    )


def _cancelled(ledger: RunLedger, facts: Any) -> RunLedger:
    partitions = map(partition_of, facts["partitions"])
    return replace(ledger, in_progress=_without(ledger.in_progress, partitions))


def _resumed(ledger: RunLedger, facts: Any) -> RunLedger:
    turn = max(ledger.turn, _turn(facts))
    return replace(
        ledger,
        outcome=None,
        dropped={},
        taken=frozenset(),
        turn=turn,
        prediction=_prediction(facts),
        took_s=None,
    )


def _ended(ledger: RunLedger, facts: Any) -> RunLedger:
    outcome = fields.text(facts["outcome"])
    took_s = facts.get("seconds") if outcome == "done" else None
    copied = tuple((float(at_s), float(size)) for at_s, size in facts.get("copied", ()))
    return replace(
        ledger,
        outcome=outcome,
        took_s=None if took_s is None else float(took_s),
        steered=tuple(map(fields.text, facts.get("steered", ()))),
        held=fields.text(facts.get("held", "")),
        waited=fields.text(facts.get("waited", "")),
        copied=copied,
    )


def _without(
    in_progress: Mapping[TopicPartition, Step], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Step]:
    gone = set(partitions)
    return {partition: step for partition, step in in_progress.items() if partition not in gone}


_CHANGES: dict[str, Callable[[RunLedger, Any], RunLedger]] = {
    "throttle": _throttle,
    "throttled": _throttled,
    "submit": _submit,
    "finished": _finished,
    "dropped": _dropped,
    "found": _found,
    "cancelled": _cancelled,
    "resumed": _resumed,
    "ended": _ended,
}


class RunJournal:
    """An open journal whose first entry is the beginning of a run."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._ledger = ledger_of(journal.entries, journal.folder)

    @property
    def folder(self) -> str:
        return self._journal.folder

    @property
    def ledger(self) -> RunLedger:
        return self._ledger

    def write(self, kind: str, **facts: object) -> JournalEntry:
        """Write an entry and return when it is on the disk."""
        entry = self._journal.write(kind, **facts)
        self._ledger = self._ledger.after(entry)
        return entry

    def settle(self, in_progress: Collection[TopicPartition], snapshot: Snapshot) -> list[Step]:
        """Record how steps ended that are no longer `in_progress`: nothing was watching when they ended.

        Return the steps that are in doubt, because the metadata and the logs contradict each other.
        """
        lost = [step for name, step in self._ledger.in_progress.items() if name not in in_progress]
        lost += self._ledger.given_up
        now = {step.partition: snapshot.partition(step.partition) for step in lost}
        arrived = [s for s in lost if (p := now[s.partition]) is not None and p.replicas == s.after]
        if arrived:
            self.write("finished", steps=[step_document(step) for step in arrived])
        ended = [step for step in lost if step not in arrived]
        logs = {name: () if each is None else each.copies for name, each in now.items()}
        begun = [step for step in ended if step.partition in self._ledger.in_progress]
        cancelled = [s for s in begun if not has_extra_logs(s, (each.broker for each in logs[s.partition]))]
        if cancelled:
            self.write("cancelled", partitions=[list(step.partition) for step in cancelled])
        return [step for step in begun if step not in cancelled]

    def close(self) -> None:
        self._journal.close()
