"""What a journal adds up to: what was set, what is under way, what is done. A `Book` keeps both together.

    began      the plan, and who carries it out           resumed    who does so from here on
    throttle   what is about to be set, and what was there     throttled    which of it failed
    submit     steps that are about to be submitted       submitted  which of them were refused
    dirs       replicas that are about to be sent to another directory
    finished   steps that have ended well                 dropped    a partition that is not moved, and why
    found      partitions that somebody else has moved to where the plan wants them
    cancel     steps that are about to be taken back      cancelled  those that were
    elect      partitions about to be led by their first replica, and who led them
    ended      how it came out

Every change is announced before it is made; whatever a killed run had announced last may or may not have
happened, and the ledger counts it as both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from restow.errors import RestowError
from restow.execute.journal.journal import DamagedJournal, JournalEntry
from restow.execute.journal.records import (
    partition_of,
    plan_of,
    setting_of,
    step_document,
    step_of,
    text_of,
    text_or_none,
    texts_by_text,
    turn_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from restow.execute.journal.journal import Journal
    from restow.execute.throttle.throttles import Setting
    from restow.model import Plan, Snapshot, Step, TopicPartition


class NotARun(RestowError):
    """A journal that does not begin with a run's beginning."""


@dataclass(frozen=True, kw_only=True)
class RunLedger:
    """A run as far as its journal tells."""

    plan: Plan
    turn: int = 0
    """Counts up with every run that begins or goes on, in whichever direction clocks are turned."""
    undo_of: str | None = None
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """What the topics of the plan were when it began; one of another id is another topic."""
    prior: Mapping[Setting, str | None] = field(default_factory=dict)
    """What each setting that is ours would be without us."""
    ours: Mapping[Setting, tuple[str, ...]] = field(default_factory=dict)
    """What we may have set it to. A setting that was brought back is in neither."""
    borrowed: frozenset[Setting] = frozenset()
    """Settings that were another run's when we first set them: their prior value may have no owner later."""
    under_way: Mapping[TopicPartition, Step] = field(default_factory=dict)
    finished: tuple[Step, ...] = ()
    submitted: frozenset[TopicPartition] = frozenset()
    """Partitions that this run has ever asked to move. It has changed no others."""
    found: frozenset[TopicPartition] = frozenset()
    """Partitions that somebody else has moved to where the plan wants them."""
    dropped: Mapping[TopicPartition, str] = field(default_factory=dict)
    outcome: str | None = None
    """How it ended, None if it did not: then it still runs, or was killed."""

    @property
    def is_settled(self) -> bool:
        """Whether nothing of it is left on the cluster: neither a throttle nor a move under way."""
        return self.outcome is not None and not self.ours and not self.under_way

    def after(self, entry: JournalEntry) -> RunLedger:
        """With one more entry."""
        change = _CHANGES.get(entry.kind)
        return self if change is None else change(self, entry.facts)


def ledger_of(entries: Iterable[JournalEntry], where: str) -> RunLedger:
    """Add up a journal. `where` it is, for the complaint."""
    remaining = iter(entries)
    first = next(remaining, None)
    if first is None or first.kind != "began":
        raise NotARun(
            f"{where}: this journal has no beginning: nothing was done under it, so nothing is to do"
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
        plan=plan_of(facts["plan"], f"the plan in {where}"),
        turn=turn_of(facts),
        undo_of=text_or_none(facts.get("undo_of")),
        topic_ids=texts_by_text(facts.get("topic_ids", {})),
    )


def has_heard_of(ledger: RunLedger, snapshot: Snapshot) -> bool:
    """Whether a snapshot can be from after the run's last entry: what has arrived is there, and what is under
    way moves, or is at one of its ends. A broker that has not heard of an end tells of neither."""
    last = {step.partition: step for step in ledger.finished}

    def may_be(name: TopicPartition, replicas: tuple[int, ...]) -> bool:
        begun = ledger.under_way.get(name)
        if begun is None:
            return replicas == last[name].after
        return replicas == begun.after or set(replicas) == set(begun.before)

    seen = {name: snapshot.partition(name) for name in last.keys() | ledger.under_way.keys()}
    return all(each is None or each.moving or may_be(name, each.replicas) for name, each in seen.items())


def _throttle(ledger: RunLedger, facts: Any) -> RunLedger:
    prior, ours = dict(ledger.prior), dict(ledger.ours)
    for each in facts["changes"]:
        setting = setting_of(each["setting"])
        prior[setting] = text_or_none(each["prior"])
        value = text_or_none(each["value"])
        if value is not None and value != each["prior"]:
            ours[setting] = tuple(dict.fromkeys((*ours.get(setting, ()), value)))
        else:
            ours.setdefault(setting, ())
    borrowed = ledger.borrowed.union(setting_of(each) for each in facts.get("borrowed", ()))
    return replace(ledger, prior=prior, ours=ours, borrowed=borrowed)


def _throttled(ledger: RunLedger, facts: Any) -> RunLedger:
    """What arrived is what is there; what was brought back is ours no more."""
    prior, ours = dict(ledger.prior), dict(ledger.ours)
    for each in facts["arrived"]:
        setting, value = setting_of(each["setting"]), text_or_none(each["value"])
        if value == prior.get(setting):
            ours.pop(setting, None)
            prior.pop(setting, None)
        else:
            ours[setting] = () if value is None else (value,)
    return replace(ledger, prior=prior, ours=ours, borrowed=ledger.borrowed & ours.keys())


def _submit(ledger: RunLedger, facts: Any) -> RunLedger:
    begun = {step.partition: step for step in map(step_of, facts["steps"])}
    return replace(
        ledger,
        under_way={**ledger.under_way, **begun},
        submitted=ledger.submitted | begun.keys(),
        outcome=None,
    )


def _finished(ledger: RunLedger, facts: Any) -> RunLedger:
    steps = tuple(map(step_of, facts["steps"]))
    return replace(
        ledger,
        under_way=_without(ledger.under_way, (step.partition for step in steps)),
        finished=(*ledger.finished, *steps),
    )


def _dropped(ledger: RunLedger, facts: Any) -> RunLedger:
    partition = partition_of(facts["partition"])
    return replace(
        ledger,
        under_way=_without(ledger.under_way, (partition,)),
        dropped={**ledger.dropped, partition: text_of(facts["reason"])},
    )


def _found(ledger: RunLedger, facts: Any) -> RunLedger:
    partitions = frozenset(map(partition_of, facts["partitions"]))
    return replace(ledger, under_way=_without(ledger.under_way, partitions), found=ledger.found | partitions)


def _cancelled(ledger: RunLedger, facts: Any) -> RunLedger:
    partitions = map(partition_of, facts["partitions"])
    return replace(ledger, under_way=_without(ledger.under_way, partitions))


def _resumed(ledger: RunLedger, facts: Any) -> RunLedger:
    return replace(ledger, outcome=None, dropped={}, turn=max(ledger.turn, turn_of(facts)))


def _ended(ledger: RunLedger, facts: Any) -> RunLedger:
    return replace(ledger, outcome=text_of(facts["outcome"]))


def _without(
    under_way: Mapping[TopicPartition, Step], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, Step]:
    gone = set(partitions)
    return {partition: step for partition, step in under_way.items() if partition not in gone}


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


class Book:
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
        """Returns when the entry is on the disk."""
        entry = self._journal.write(kind, **facts)
        self._ledger = self._ledger.after(entry)
        return entry

    def settle(self, under_way: Collection[TopicPartition], snapshot: Snapshot) -> None:
        """Write down the end of steps that came to it while nobody looked; these are still `under_way`."""
        lost = [step for name, step in self._ledger.under_way.items() if name not in under_way]
        now = {step.partition: snapshot.partition(step.partition) for step in lost}
        arrived = [s for s in lost if (p := now[s.partition]) is not None and p.replicas == s.after]
        if arrived:
            self.write("finished", steps=[step_document(step) for step in arrived])
        if gone := [list(step.partition) for step in lost if step not in arrived]:
            self.write("cancelled", partitions=gone)

    def close(self) -> None:
        self._journal.close()
