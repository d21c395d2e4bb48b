"""The request for a plan. Several demands may be in one request; together they make one plan."""

from __future__ import annotations

from dataclasses import field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.model import Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.model import BrokerId, Move, TopicPartition


_WILDCARDS = ("*", "?", "[")


@frozen
class PlanRequest:
    """What to reach, and what not to touch.

    `balance` brings every goal into its band; `add` does so by giving to these brokers alone; `leaders` as
    far as possible without copying; `relieve` only takes from brokers above a limit. `drain` empties brokers,
    `replace` puts others in their place, `replication_factors` changes them, `fix_racks` spreads replicas
    over racks, `disks` balances the log dirs within each broker. `demote` takes leadership, and nothing else,
    from brokers.
    """

    balance: bool = False
    leaders: bool = False
    disks: bool = False
    fix_racks: bool = False
    add: frozenset[BrokerId] = frozenset()
    drain: frozenset[BrokerId] = frozenset()
    demote: frozenset[BrokerId] = frozenset()
    replace: Mapping[BrokerId, BrokerId] = field(default_factory=dict)
    replication_factors: Mapping[str, int] = field(default_factory=dict)
    """Replication factors by topic or pattern. A pattern that begins with a wildcard leaves out Kafka's
    internal topics.
    """
    relieve: Mapping[str, float] = field(default_factory=dict)
    """By goal: the most that a broker may have, in multiples of its share."""
    bands: Mapping[str, float | None] = field(default_factory=dict)
    """By goal: how far from its share a broker may be; the goal's default if missing, any if None."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """By goal: how much being out of band counts; 1 if missing."""
    spread_topics: bool = False
    """Whether to spread each topic's replicas and leaders over the brokers too."""
    only_topics: tuple[str, ...] = ()
    """Patterns like those for file names; all topics if empty."""
    except_topics: tuple[str, ...] = ()
    except_partitions: frozenset[TopicPartition] = frozenset()
    except_brokers: frozenset[BrokerId] = frozenset()
    """Brokers that neither receive nor give replicas."""
    cordon: frozenset[BrokerId] = frozenset()
    """Brokers that receive no replicas, but may give some and may lead."""
    any_rack: bool = False
    """Whether a replacement may be in a rack that already has another replica."""
    most_bytes: int | None = None
    most_moves: int | None = None
    fill: float = 0.9
    """The share of a log dir's file system that may be used."""
    seed: int = 0

    @property
    def sheds(self) -> bool:
        """Return whether overloaded brokers give replicas away."""
        return self.balance or bool(self.add) or bool(self.relieve)

    @property
    def names_partitions(self) -> bool:
        """Return whether the request is about single partitions, so that those left behind can be listed."""
        return bool(self.leaving or self.replication_factors or self.fix_racks or self.demote)

    @property
    def keeps_shares(self) -> bool:
        """Return whether every broker's even load is the same before and after."""
        return not (self.leaving or self.replication_factors or self.demote)

    @property
    def leaving(self) -> frozenset[BrokerId]:
        """Return the brokers that will be empty."""
        return self.drain | self.replace.keys()

    @property
    def barred(self) -> frozenset[BrokerId]:
        """Return the brokers that receive nothing."""
        return self.leaving | self.except_brokers

    @property
    def named(self) -> frozenset[BrokerId]:
        return self.barred | self.add | self.demote | self.cordon | frozenset(self.replace.values())

    def is_about(self, topic: str) -> bool:
        """Return whether the request names this topic, even if it must not change."""
        return not self.only_topics or any(fnmatchcase(topic, pattern) for pattern in self.only_topics)

    def covers(self, topic: str) -> bool:
        """Return whether this topic may change."""
        if any(fnmatchcase(topic, pattern) for pattern in self.except_topics):
            return False
        return self.is_about(topic)

    def replication_factor_of(self, topic: str, *, internal: bool = False) -> int | None:
        """Return the requested replication factor of a topic, from the last pattern that matches.

        An internal topic matches only by its name: `*` does not match `__consumer_offsets`.
        """
        wanted = [
            replication_factor
            for pattern, replication_factor in self.replication_factors.items()
            if fnmatchcase(topic, pattern) and not (internal and pattern.startswith(_WILDCARDS))
        ]
        return wanted[-1] if wanted else None


USUAL = Limits()
_BYTES_IN = 2 << 30
_MOST_IN = 10 * USUAL.moves_in


@frozen
class RequestedLimits:
    """Limits, some of which are open until the moves are known."""

    extra_copies: int = USUAL.extra_copies
    moves_in: int | None = None
    moves_out: int | None = None
    fill: float = USUAL.fill

    def for_moves(self, moves: Iterable[Move]) -> Limits:
        """Return the limits for these moves: more replicas at a time if they are small."""
        times = _times_the_usual(moves)
        return Limits(
            extra_copies=self.extra_copies,
            moves_in=round(USUAL.moves_in * times) if self.moves_in is None else self.moves_in,
            moves_out=round(USUAL.moves_out * times) if self.moves_out is None else self.moves_out,
            fill=self.fill,
        )


def settled(limits: Limits | RequestedLimits | None, moves: Iterable[Move]) -> Limits:
    """Return limits without open values, for these moves."""
    if isinstance(limits, Limits):
        return limits
    return (limits or RequestedLimits()).for_moves(moves)


def _times_the_usual(moves: Iterable[Move]) -> float:
    """Return the factor for the usual limits; 1 if sizes are unknown or nothing is copied."""
    copies = copied_bytes = 0
    for move in moves:
        made = len(move.adding) + len(move.dir_changes)
        copies += made
        copied_bytes += move.bytes_to_copy
    if not copied_bytes:
        return 1.0
    usual_bytes = USUAL.moves_in * copied_bytes / copies
    return min(max(_BYTES_IN / usual_bytes, 1.0), _MOST_IN / USUAL.moves_in)
