"""Set throttles on the cluster for steps under way, and restore them afterwards, with the journal first.

Before every change, the value that each config would have without our entries is computed again. So entries
that other tools add to a list stay, and a rate that another tool has set is left alone. Brokers may answer
with outdated configs: right after our own change, or that of a process whose run we go on with, an answer
counts only if it shows that change. A broker
that has just started knows no topics: one counts as deleted only if the broker still does not know it after
a while, and the metadata does not have it either.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.client import BrokerError, ConfigResource
from restow.execute.progress.observation import PATIENCE_S
from restow.execute.run.steps import topics_now
from restow.execute.throttle.throttles import (
    DIR_RATE,
    RATES,
    REPLICAS,
    REPLICATION_RATES,
    Setting,
    ThrottleRates,
    entries,
    merged,
    needed,
    restoration,
)
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from restow.client import Admin
    from restow.execute.journal.ledger import RunJournal
    from restow.execute.progress.status import Tell
    from restow.model import BrokerId, Step, TopicPartition
    from restow.runtime.clock import Clock


_UNKNOWN = object()
_GRACE_S = 5.0
"""How long a broker may answer with the value from before."""
_ASK_AGAIN_S = 0.05
_LATER = (ErrorCode.BROKER_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
"""Errors of brokers that are down, or do not know all topics yet."""


@frozen
class Applied:
    """The result of applying the throttle configs."""

    changed: Mapping[Setting, str | None] = field(default_factory=dict)
    failed: Mapping[Setting, BrokerError] = field(default_factory=dict)
    left_alone: Mapping[Setting, str | None] = field(default_factory=dict)
    """Rates that another tool has set since, with their values."""

    def told(self, tell: Tell) -> None:
        """Report every config."""
        for kind, settings in (("throttle", self.changed), ("left alone", self.left_alone)):
            for setting, value in settings.items():
                tell(kind, of=f"{setting.of} {setting.name}", key=setting.key, value=value)

    def refusal(self, step: Step) -> BrokerError | None:
        """Say why this step cannot be throttled.

        A broker that is down, or does not know the topic yet, is no reason: its config is set later.
        """
        owners = {("topic", step.partition.topic), *(("broker", str(b)) for b in (*step.before, *step.after))}
        for setting, error in self.failed.items():
            if (setting.of, setting.name) in owners and error.code not in _LATER:
                return error
        return None


class Throttling:
    """The throttles of one run."""

    def __init__(self, admin: Admin, clock: Clock, book: RunJournal, wanted: ThrottleRates) -> None:
        self._admin, self._clock, self._run_journal = admin, clock, book
        self.wanted = wanted
        self.factor = 1.0
        """The rate to set, divided by the wanted rate: brokers may let through less than configured."""
        self.foreign: dict[Setting, str | None] = {}
        """Rates that other tools have set during the run; we no longer change them."""
        self._others: dict[Setting, str | None] = {}
        """Values that other tools have set instead of ours, as last read."""
        self._stands: dict[Setting, str] | None = None
        began_s = clock.monotonic_s()
        self._sent: dict[Setting, tuple[str | None, float]] = {
            setting: (value, began_s) for setting, value in book.ledger.told.items()
        }
        """The values that we set last, and when. A process that was killed may have set some just now."""
        self._unknown_since_s: dict[str, float] = {}
        """The topics that the last answer did not know, and since when."""

    async def apply(
        self,
        steps: Collection[Step],
        dir_moves: Iterable[BrokerId],
        alive: frozenset[BrokerId],
        *,
        look: bool,
    ) -> Applied:
        """Set the configs that these steps need and restore the others. Brokers that are down get theirs
        later.

        Without changes since the last call, nothing is asked unless `look` is set.
        """
        wants = {
            setting: value
            for setting, value in needed(steps, dir_moves, self._set_to).items()
            if setting.of != "broker" or int(setting.name) in alive
        }
        if wants == self._stands and not look:
            return Applied()
        own = {step.partition for step in steps}
        ours = {
            s: v for s, v in self._run_journal.ledger.ours.items() if s.of != "broker" or int(s.name) in alive
        }
        if not wants and not ours:
            self._stands = wants
            return Applied()
        current, gone = await self._read({*wants, *ours})
        borrowed, ended = await self._borrowed(current, ours, own)
        answered = {s: values for s, values in ours.items() if s in current}
        back = restoration({**self._run_journal.ledger.prior, **dict.fromkeys(ended)}, answered, current)
        fresh = self._respect(back.left_alone)
        without_us = {s: back.changes.get(s, current[s]) for s in current}
        mine = {s: v for s, v in wants.items() if s in current and s not in self.foreign}
        # Another tool may undo its change of a rate, so the rate stays in our ledger until nothing moves.
        kept = back.left_alone.keys() if wants else set()
        aims: dict[Setting, str | None] = {s: without_us[s] for s in ours if s in current and s not in kept}
        aims.update(merged(mine, without_us))
        changes = {s: v for s, v in aims.items() if v != current[s] or (s in ours and v == without_us[s])}
        changes.update({s: None for s in gone if s in ours})
        brought_back = ours.keys() - mine.keys() - back.left_alone.keys()
        failed = await self._set(changes, without_us, current, brought_back, borrowed)
        given_back = {s for s in borrowed & brought_back - failed.keys() if changes.get(s) is not None}
        failed.update(await self._take_off(given_back, own))
        self._stands = None if failed else wants
        if not wants:
            await self._read(set(self._sent))  # the next run must read the restored values
        elif new := {s for s in wants.keys() & changes.keys() - failed.keys() if _is_new_rate(s, current)}:
            await self._read(new)  # a copy that begins before its broker knows the rate would not be held
        told = {s: v for s, v in changes.items() if current.get(s) != v and s not in failed}
        return Applied(changed=told, failed=failed, left_alone=fresh)

    async def _borrowed(
        self,
        current: Mapping[Setting, str | None],
        ours: Mapping[Setting, tuple[str, ...]],
        own: Collection[TopicPartition],
    ) -> tuple[set[Setting], set[Setting]]:
        """Return the rates that belonged to another run before us, and those among them whose run has ended.

        Another run cannot remove its rate while ours is set. If it ends meanwhile, the rate that we restore
        would have no owner.
        """
        prior, known = self._run_journal.ledger.prior, self._run_journal.ledger.borrowed
        there = {s: prior.get(s) if s in ours else value for s, value in current.items()}
        rates = {s for s, value in there.items() if s.key in REPLICATION_RATES and value is not None}
        if not rates:
            return set(), set()
        mine = {
            s: set().union(*map(entries, values)) - entries(prior.get(s) or "") for s, values in ours.items()
        }
        used = await used_by_others(self._admin, own, mine)
        borrowed = {s for s in rates if s in known or int(s.name) in used}
        return borrowed, {s for s in borrowed if s in ours and int(s.name) not in used}

    async def _take_off(
        self, given_back: set[Setting], own: Collection[TopicPartition]
    ) -> dict[Setting, BrokerError]:
        """Remove rates that were restored for a run that ended in the same moment."""
        used = await used_by_others(self._admin, own) if given_back else frozenset()
        stale: dict[Setting, str | None] = {s: None for s in given_back if int(s.name) not in used}
        there = {s: self._sent[s][0] for s in stale}
        return await self._set(stale, {}, there, stale.keys(), set())

    @property
    def foreign_rates(self) -> dict[BrokerId, int]:
        """Return the replication rates that other tools have set, by broker."""
        return {int(s.name): int(v) for s, v in self.foreign.items() if v and s.key != DIR_RATE}

    @property
    def _set_to(self) -> ThrottleRates:
        rate = self.wanted.rate
        return self.wanted if rate is None else replace(self.wanted, rate=round(rate * self.factor))

    def _respect(self, left_alone: Mapping[Setting, str | None]) -> dict[Setting, str | None]:
        """Note the values that other tools have set, and return those that are new."""
        fresh = {s: v for s, v in left_alone.items() if self._others.get(s, _UNKNOWN) != v}
        self._others = dict(left_alone)
        for setting in self._run_journal.ledger.ours.keys() - left_alone.keys():
            self.foreign.pop(setting, None)
        self.foreign.update({s: value for s, value in left_alone.items() if s.key in RATES})
        return fresh

    async def _read(self, settings: set[Setting]) -> tuple[dict[Setting, str | None], set[Setting]]:
        """Return the present configs, and the configs whose topic is gone; those without an answer are in
        neither.

        Repeats the request while a broker answers with a value from before our last change, or does not know
        a topic.
        """
        while True:
            current, unknown = await self._ask(settings)
            existing = {topic.name for topic in await topics_now(self._admin, {s.name for s in unknown})}
            now_s = self._clock.monotonic_s()
            self._unknown_since_s = {s.name: self._unknown_since_s.get(s.name, now_s) for s in unknown}
            doubtful = [at_s for s, (value, at_s) in self._sent.items() if current.get(s, value) != value]
            if all(now_s - at_s >= _GRACE_S for at_s in (*doubtful, *self._unknown_since_s.values())):
                return current, {s for s in unknown if s.name not in existing}
            await self._clock.sleep(_ASK_AGAIN_S)

    async def _ask(self, settings: set[Setting]) -> tuple[dict[Setting, str | None], set[Setting]]:
        """Return the configs that a broker tells, and those whose topic it does not know."""
        owners = {ConfigResource(s.of, s.name) for s in settings}
        keys = {s.key for s in settings}
        answers = await self._admin.describe_configs(sorted(owners), keys, PATIENCE_S)
        current: dict[Setting, str | None] = {}
        unknown = set()
        for setting in settings:
            answer = answers.get(ConfigResource(setting.of, setting.name))
            if isinstance(answer, BrokerError):
                if answer.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    unknown.add(setting)
            elif answer is not None:
                config = answer.get(setting.key)
                is_set = config is not None and config.source == setting.of
                current[setting] = config.value if config is not None and is_set else None
        return current, unknown

    async def _set(
        self,
        changes: Mapping[Setting, str | None],
        prior: Mapping[Setting, str | None],
        current: Mapping[Setting, str | None],
        brought_back: Collection[Setting],
        borrowed: Collection[Setting],
    ) -> dict[Setting, BrokerError]:
        """Set configs, with the journal first. Skip values in place, unless they restore a prior value."""
        if not changes:
            return {}
        ordered = sorted(changes)
        self._run_journal.write(
            "throttle",
            changes=[{"setting": list(s), "prior": prior.get(s), "value": changes[s]} for s in ordered],
            borrowed=[list(s) for s in ordered if s in borrowed],
        )
        requests: dict[ConfigResource, dict[str, str | None]] = {}
        for setting in ordered:
            if setting in current and (current[setting] != changes[setting] or setting in brought_back):
                owner = ConfigResource(setting.of, setting.name)
                requests.setdefault(owner, {})[setting.key] = changes[setting]
        outcome = await self._alter(requests)
        failed = {
            s: error for s in ordered if (error := outcome.get(ConfigResource(s.of, s.name))) is not None
        }
        at_s = self._clock.monotonic_s()
        for setting in ordered:
            if setting in failed:
                self._sent.pop(setting, None)
            elif setting in current:
                self._sent[setting] = changes[setting], at_s
        self._run_journal.write(
            "throttled",
            arrived=[{"setting": list(s), "value": changes[s]} for s in ordered if s not in failed],
            failed=[{"setting": list(s), "error": str(error)} for s, error in failed.items()],
        )
        return failed

    async def _alter(
        self, requests: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> dict[ConfigResource, BrokerError | None]:
        """Send the changes, and again those of topics that exist and that the broker did not know yet."""
        outcome: dict[ConfigResource, BrokerError | None] = {}
        left, until_s = dict(requests), self._clock.monotonic_s() + _GRACE_S
        while left:
            outcome.update(await self._admin.incremental_alter_configs(left))
            unknown = {
                Setting(owner.of, owner.name, key): owner
                for owner, keys in left.items()
                for key in keys
                if (error := outcome.get(owner)) is not None
                and error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            }
            gone = (await self._read(set(unknown)))[1] if unknown else set()
            outcome.update({unknown[s]: None for s in gone})
            left = {owner: requests[owner] for s, owner in unknown.items() if s not in gone}
            if not left or self._clock.monotonic_s() >= until_s:
                break
            await self._clock.sleep(_ASK_AGAIN_S)
        return outcome


def _is_new_rate(setting: Setting, before: Mapping[Setting, str | None]) -> bool:
    """Return whether a broker had no such throttle.

    Brokers on ZooKeeper hear of their configs a moment after they are set, in the order in which they were
    set. The client sets the lists of topics first, so a broker that tells its new rate knows them, too.
    """
    return setting.key in RATES and before.get(setting) is None


async def used_by_others(
    admin: Admin, own: Collection[TopicPartition], mine: Mapping[Setting, set[str]] | None = None
) -> frozenset[BrokerId]:
    """Return the brokers on which another tool's moves are throttled.

    A tool that throttles a move lists its replicas in the topic's config. A rate that an operator sets
    permanently goes with `*`, or with lists that do not match the moves. Entries that are `mine` say nothing
    of another tool: a request of ours may move a partition that this run has given up.
    """
    moves = {
        name: move for name, move in (await admin.list_partition_reassignments()).items() if name not in own
    }
    if not moves:
        return frozenset()
    topics = sorted({ConfigResource("topic", name.topic) for name in moves})
    configs = await admin.describe_configs(topics, REPLICAS)
    used: set[BrokerId] = set()
    for name, move in moves.items():
        told = configs.get(ConfigResource("topic", name.topic))
        if told is None or isinstance(told, BrokerError):
            continue
        listed = {
            each
            for key in REPLICAS
            if key in told
            for each in entries(told[key].value or "")
            - (mine or {}).get(Setting("topic", name.topic, key), set())
        }
        used.update(broker for broker in move.replicas if f"{name.partition}:{broker}" in listed)
    return frozenset(used)
