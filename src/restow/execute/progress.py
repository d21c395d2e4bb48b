"""How far it has got, how fast it goes, when it will be done, and why something stands still.

Pure: told what was seen, one sight after the other, it says what a person would want to know of it.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.execute.stillness import History, Still, why_still

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.execute.sight import Sight
    from restow.model import BrokerId, Step, TopicPartition

_SHORT_S, _LONG_S = 10.0, 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Copying:
    """One replica on its way to a broker."""

    partition: TopicPartition
    broker: BrokerId
    leader: BrokerId | None
    size_bytes: int
    copied_bytes: int
    in_sync: bool

    @property
    def behind_bytes(self) -> int:
        """What it lacks of its leader's. Brokers tell of no lag in messages but that of a future replica."""
        return max(0, self.size_bytes - self.copied_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerPart:
    """What one broker has received of what it is to receive."""

    broker: BrokerId
    done_bytes: int
    to_do_bytes: int
    replicas: int
    """On their way to it now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Eta:
    """Seconds left: at the best of the recent rates and at the worst."""

    soonest_s: float
    latest_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Where things stand."""

    done_bytes: int
    to_do_bytes: int
    rate: float
    eta: Eta | None
    brokers: tuple[BrokerPart, ...]
    copying: tuple[Copying, ...]
    still: tuple[Still, ...]


class Progress:
    """Told of everything that is to be copied, and then of every sight."""

    def __init__(self, stall_s: float) -> None:
        self._stall_s = stall_s
        self._to_do: Counter[BrokerId] = Counter()
        self._done: Counter[BrokerId] = Counter()
        self._history: dict[tuple[TopicPartition, BrokerId], History] = {}
        self._totals: deque[tuple[float, int]] = deque()

    def expect(self, steps: Iterable[Step]) -> None:
        """These are to be done."""
        for step in steps:
            self._to_do.update(dict.fromkeys(step.adding, step.size_bytes))

    def forget(self, steps: Iterable[Step]) -> None:
        """These will not be done after all."""
        for step in steps:
            self._to_do.subtract(dict.fromkeys(step.adding, step.size_bytes))
            self._let_go(step)

    def finish(self, step: Step) -> None:
        """This one has ended well."""
        self._done.update(dict.fromkeys(step.adding, step.size_bytes))
        self._let_go(step)

    def report(
        self,
        sight: Sight,
        under_way: Iterable[Step],
        *,
        throttle: int | None = None,
        foreign_rates: Mapping[BrokerId, int] | None = None,
    ) -> Report:
        """Where things stand at this sight."""
        copying = tuple(each for step in under_way for each in copying_of(step, sight))
        now: Counter[BrokerId] = Counter()
        replicas = Counter(each.broker for each in copying)
        still = []
        for each in copying:
            now[each.broker] += min(each.copied_bytes, each.size_bytes)
            history = self._history.setdefault((each.partition, each.broker), History())
            history.add(sight.at_s, each.copied_bytes, each.size_bytes)
            found = why_still(
                each, history, sight, stall_s=self._stall_s, throttle=throttle, foreign=foreign_rates or {}
            )
            if found is not None:
                still.append(found)
        done = sum(self._done.values()) + sum(now.values())
        to_do = max(sum(self._to_do.values()), done)
        self._totals.append((sight.at_s, done))
        while self._totals[-1][0] - self._totals[0][0] > _LONG_S:
            self._totals.popleft()
        rates = [rate for span in (_SHORT_S, _LONG_S) if (rate := self._rate(span)) > 0]
        return Report(
            done_bytes=done,
            to_do_bytes=to_do,
            rate=rates[0] if rates else 0.0,
            eta=eta_of(to_do - done, rates),
            brokers=tuple(
                BrokerPart(
                    broker=broker,
                    done_bytes=self._done[broker] + now[broker],
                    to_do_bytes=max(self._to_do[broker], self._done[broker] + now[broker]),
                    replicas=replicas[broker],
                )
                for broker in sorted(
                    broker for broker, size in self._to_do.items() if size or replicas[broker]
                )
            ),
            copying=copying,
            still=tuple(still),
        )

    def _let_go(self, step: Step) -> None:
        for broker in step.adding:
            self._history.pop((step.partition, broker), None)

    def _rate(self, span_s: float) -> float:
        """Bytes per second over the last so many seconds."""
        last_s, last = self._totals[-1]
        first_s, first = next(each for each in self._totals if last_s - each[0] <= span_s)
        return (last - first) / (last_s - first_s) if last_s > first_s else 0.0


def copying_of(step: Step, sight: Sight) -> tuple[Copying, ...]:
    """The replicas that a step adds, as they are now."""
    known = sight.partitions.get(step.partition)
    size = max(sight.size_of(step.partition), step.size_bytes)
    copies = sight.copies.get(step.partition, {})
    return tuple(
        Copying(
            partition=step.partition,
            broker=broker,
            leader=None if known is None else known.leader,
            size_bytes=size,
            copied_bytes=copies[broker].size_bytes if broker in copies else 0,
            in_sync=known is not None and broker in known.isr,
        )
        for broker in step.adding
    )


def eta_of(left_bytes: int, rates: list[float]) -> Eta | None:
    """A range, because the last minutes are no promise; None where nothing moves."""
    if not rates:
        return None
    return Eta(soonest_s=left_bytes / max(rates), latest_s=left_bytes / min(rates))
