"""The throttle configs of a run, and how to restore them exactly.

    broker   leader.replication.throttled.rate      what a broker sends to replicas that catch up
    broker   follower.replication.throttled.rate    what it fetches for its own replicas
    broker   replica.alter.log.dirs.io.max.bytes.per.second    what it copies between its log dirs
    topic    leader.replication.throttled.replicas      replicas that send slowly: `partition:broker`, or `*`
    topic    follower.replication.throttled.replicas    replicas that fetch slowly

Other tools may have set some of these before, or may set them during the run. Their values stay: lists are
merged with ours, and our entries are removed at the end; a rate that is no longer ours is left alone.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple

from restow._frozen import frozen
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
    """One config of a broker or a topic; `of` is "broker" or "topic"."""

    of: str
    name: str
    key: str


@frozen
class ThrottleRates:
    """Rates in bytes per second; None for no throttle."""

    rate: int | None = None
    dir_rate: int | None = None

    def by_way(self) -> dict[Way, float]:
        """Return the rates in force, by direction through a broker."""
        rates = {Way.RECEIVED: self.rate, Way.SENT: self.rate, Way.WITHIN: self.dir_rate}
        return {way: rate for way, rate in rates.items() if rate is not None}


@frozen
class Restoration:
    """The configs to set at the end, and those left alone because another tool has set them since."""

    changes: Mapping[Setting, str | None] = field(default_factory=dict)
    left_alone: Mapping[Setting, str | None] = field(default_factory=dict)


def needed(steps: Iterable[Step], dir_moves: Iterable[BrokerId], wanted: ThrottleRates) -> dict[Setting, str]:
    """Return the configs that these steps need, as if none were set before.

    All present replicas send, because each may become the leader; the added replicas receive.
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
    """Return the configs to set so that existing values keep effect: lists grow, `*` stays, our rates win."""
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
    """Return the changes that restore every config that we set.

    `ours` are the values that we may have set: more than one if the last attempt may have failed. If the
    present value is one of them, the prior value is restored exactly. From a list that another tool has
    changed, only our own entries are removed.
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
    """Format a list of `partition:broker`, sorted."""
    return ",".join(sorted(entries, key=_order))


def entries(value: str) -> set[str]:
    """Parse a list of `partition:broker`."""
    return {entry.strip() for entry in value.split(",") if entry.strip()}


def _order(entry: str) -> tuple[tuple[int, int | str], ...]:
    parts = entry.split(":")
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in parts)
