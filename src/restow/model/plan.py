"""A plan: what is to change, pinned to what it was made from.

A plan that was approved is the plan that is executed. So it carries the assignments it starts from and the
ids of its topics; if the cluster has others by then, the plan does not fit any more and has to be rebased.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model.ids import BrokerId, TopicPartition

ANY_DIR = "any"


class _Change:
    """From some replicas to others."""

    __slots__ = ()
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        before = self.before
        return tuple([broker for broker in self.after if broker not in before])

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        after = self.after
        return tuple([broker for broker in self.before if broker not in after])


@dataclass(frozen=True, slots=True, kw_only=True)
class Move(_Change):
    """One partition's way from its present replicas to others, or to other directories, or another order."""

    partition: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    size_bytes: int = 0
    """What one new replica has to copy: the size of the leader's log when the plan was made."""
    log_dirs: tuple[str, ...] = ()
    """One for each replica of `after`, "any" where it does not matter; empty if it matters for none."""
    dirs_before: Mapping[BrokerId, str] = field(default_factory=dict)
    """The directory each present replica lies in, as far as known; what undoing needs."""
    reason: str = ""
    """Which goal it serves, in a few words."""
    sizes: Mapping[BrokerId, int] = field(default_factory=dict)
    """The bytes each present replica had on its own disk, as far as known. Those of tiered topics and of
    lagging followers differ from the leader's."""

    @property
    def dir_changes(self) -> Mapping[BrokerId, str]:
        """Brokers that keep their replica but in another directory, with that directory."""
        if not self.log_dirs:
            return {}
        return {
            broker: path
            for broker, path in zip(self.after, self.log_dirs, strict=False)
            if path != ANY_DIR and broker in self.before and self.dirs_before.get(broker) != path
        }

    @property
    def bytes_to_copy(self) -> int:
        """Over the network and between directories."""
        within = sum(self.own_size(broker) for broker in self.dir_changes)
        return self.size_bytes * len(self.adding) + within

    def own_size(self, broker: BrokerId) -> int:
        """The bytes that a present replica has on its own disk; the leader's where that is not known."""
        return self.sizes.get(broker, self.size_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(_Change):
    """A part of a move that is submitted at once: from one list of replicas to the next."""

    partition: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    size_bytes: int = 0
    log_dirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What must hold at any moment while a plan is carried out.

    A fetch brings at most 1 MiB of each replica and 10 MiB in all, as brokers are set unless told otherwise:
    ten replicas from the same broker fill it, and more would only wait for each other. Who receives from
    several brokers fetches from each by itself.
    """

    extra_copies: int = 1
    """How many replicas more than before or after a partition may have."""
    moves_in: int = 20
    """How many replicas a broker may be receiving."""
    moves_out: int = 10
    """How many moving replicas a broker may be sending."""
    fill: float = 0.9
    """The share of a directory's file system that may be used, old and new copies counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """One thing that a plan reaches when all of it is done, so that it can be checked as a goal.

    Kinds: `drained` and `no_leaders` (of `brokers`), `replaced` (`brokers` are the old and the new one),
    `replication_factor` (`factor` for `topics`), `racks_apart` (of `topics`, all if empty; over `brokers`),
    `balanced` (one `goal` over `brokers`, each within `band` of its share).
    """

    kind: str
    brokers: tuple[BrokerId, ...] = ()
    topics: tuple[str, ...] = ()
    replication_factor: int | None = None
    goal: str = ""
    band: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A partition that the request covers but the plan leaves behind."""

    partition: TopicPartition
    why: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to change, where it starts from, in which order, and what it promises to reach."""

    cluster_id: str
    created_ms: int
    moves: tuple[Move, ...]
    waves: tuple[tuple[Step, ...], ...] = ()
    """An order, not barriers: what is in a wave may be under way together; as one ends the next begins."""
    limits: Limits = field(default_factory=Limits)
    title: str = ""
    bound_bytes: int | None = None
    """No plan that reaches the same goals copies less than this, where that is known."""
    bound_by: str = ""
    """How that is known."""

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The id of each topic that moves. Clusters older than 2.8 have none. Another id is another topic."""
    promises: tuple[Promise, ...] = ()
    leaves: tuple[Left, ...] = ()
    """A plan that leaves something behind is incomplete."""

    @cached_property
    def moves_in_order(self) -> tuple[Move, ...]:
        """The moves as their first steps begin, and after them those that no wave has."""
        moves = {move.partition: move for move in self.moves}
        order = dict.fromkeys(step.partition for wave in self.waves for step in wave)
        return tuple(moves[name] for name in dict.fromkeys((*order, *moves)) if name in moves)

    @property
    def bytes_to_copy(self) -> int:
        return sum(move.bytes_to_copy for move in self.moves)
