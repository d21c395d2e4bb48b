"""Throttles of a run: which configs it sets, and how it takes exactly those back.

    broker   leader.replication.throttled.rate      what a broker sends to replicas that catch up
    broker   follower.replication.throttled.rate    what it fetches for its own
    broker   replica.alter.log.dirs.io.max.bytes.per.second    what it copies between its directories
    topic    leader.replication.throttled.replicas      which replicas send slowly: `partition:broker`, or `*`
    topic    follower.replication.throttled.replicas    which ones fetch slowly

Others may have set some of these before, or do so meanwhile. What they set stays: lists are merged with ours,
and at the end our part is taken out again; a rate that is not what we set it to is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from restow.plan.schedule.traffic import Way

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.model import BrokerId, Step

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DIR_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
LEADER_REPLICAS = "leader.replication.throttled.replicas"
FOLLOWER_REPLICAS = "follower.replication.throttled.replicas"
RATES = (LEADER_RATE, FOLLOWER_RATE, DIR_RATE)
REPLICATION_RATES = (LEADER_RATE, FOLLOWER_RATE)
REPLICAS = (LEADER_REPLICAS, FOLLOWER_REPLICAS)
EVERYTHING = "*"


class Setting(NamedTuple):
    """One config of one broker or topic. `of` is "broker" or "topic"."""

    of: str
    name: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ThrottleRates:
    """How fast, in bytes per second; None for as fast as it goes."""

    rate: int | None = None
    dir_rate: int | None = None

    def by_way(self) -> dict[Way, float]:
        """Return the rates that hold, by the way bytes take through a broker."""
        rates = {Way.RECEIVED: self.rate, Way.SENT: self.rate, Way.WITHIN: self.dir_rate}
        return {way: rate for way, rate in rates.items() if rate is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Restoration:
    """What is set to what at the end, and what is left alone because somebody else has set it since."""

    changes: Mapping[Setting, str | None] = field(default_factory=dict)
    left_alone: Mapping[Setting, str | None] = field(default_factory=dict)


def needed(steps: Iterable[Step], dir_moves: Iterable[BrokerId], wanted: ThrottleRates) -> dict[Setting, str]:
    """What has to be set for these steps, as if nothing had been there before.

    Senders are all present replicas, for each of them may come to lead; receivers are those that are added.
    """
    rates: dict[Setting, str] = {}
    entries: dict[Setting, set[str]] = {}
    for step in steps:
        if not step.adding:
            continue
        topic, partition = step.partition
        for key, rate_key, brokers in (
            (LEADER_REPLICAS, LEADER_RATE, step.before),
            (FOLLOWER_REPLICAS, FOLLOWER_RATE, step.adding),
        ):
            if wanted.rate is None:
                continue
            entries.setdefault(Setting("topic", topic, key), set()).update(
                f"{partition}:{b}" for b in brokers
            )
            rates.update({Setting("broker", str(b), rate_key): str(wanted.rate) for b in brokers})
    if wanted.dir_rate is not None:
        rates.update({Setting("broker", str(b), DIR_RATE): str(wanted.dir_rate) for b in dir_moves})
    return {**rates, **{setting: listed(values) for setting, values in entries.items()}}


def merged(ours: Mapping[Setting, str], there: Mapping[Setting, str | None]) -> dict[Setting, str]:
    """What to set so that what was there keeps its effect: lists grow, `*` stays, rates are ours."""
    return {setting: _merged(setting, value, there.get(setting)) for setting, value in ours.items()}


def _merged(setting: Setting, ours: str, present: str | None) -> str:
    if setting.key not in REPLICAS or not present:
        return ours
    if present.strip() == EVERYTHING:
        return EVERYTHING
    return listed(entries(present) | entries(ours))


def restoration(
    prior: Mapping[Setting, str | None],
    ours: Mapping[Setting, tuple[str, ...]],
    current: Mapping[Setting, str | None],
) -> Restoration:
    """How to bring everything that we set back to what it was before us.

    `ours` are the values that we may have set each to: more than one, where it is not known whether the last
    attempt arrived. Where one of them is there, the prior value comes back, to the letter. Of a list that
    somebody has changed only our own entries are taken out.
    """
    changes: dict[Setting, str | None] = {}
    left_alone: dict[Setting, str | None] = {}
    for setting, values in ours.items():
        before, now = prior.get(setting), current.get(setting)
        if now == before:
            continue
        if now in values:
            changes[setting] = before
        elif setting.key in REPLICAS and now is not None and now.strip() != EVERYTHING:
            mine = set().union(*map(entries, values)) - entries(before or "")
            rest = entries(now) - mine
            if rest == entries(now):
                left_alone[setting] = now
            else:
                changes[setting] = before if rest == entries(before or "") else listed(rest) or None
        else:
            left_alone[setting] = now
    return Restoration(changes=changes, left_alone=left_alone)


def listed(entries: Iterable[str]) -> str:
    """A list of `partition:broker` in order."""
    return ",".join(sorted(entries, key=_order))


def entries(value: str) -> set[str]:
    """Read a list of `partition:broker`."""
    return {entry.strip() for entry in value.split(",") if entry.strip()}


def _order(entry: str) -> tuple[tuple[int, int | str], ...]:
    parts = entry.split(":")
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in parts)
