"""A plan: the changes to make, pinned to the state it was made from.

The plan that was approved is the plan that is executed. So it carries the assignments it starts from and the
ids of its topics; if the cluster has changed since, the plan has to be rebased.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.model.showing import data_frame, plan_html, plan_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model.ids import BrokerId, TopicPartition

ANY_DIR = "any"


class _Change:
    """A change from one list of replicas to another."""

    __slots__ = ("_adding",)
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    _adding: tuple[BrokerId, ...]

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        """The brokers that get a replica; kept, because a schedule asks ten times for each step."""
        try:
            return self._adding
        except AttributeError:
            before = self.before
            object.__setattr__(self, "_adding", tuple([each for each in self.after if each not in before]))
            return self._adding

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        after = self.after
        return tuple([broker for broker in self.before if broker not in after])


@frozen
class Move(_Change):
    """The change of one partition to other replicas, other log dirs, or another order."""

    partition: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    size_bytes: int = 0
    """The bytes that one new replica has to copy: the size of the leader's log when the plan was made."""
    log_dirs: tuple[str, ...] = ()
    """One for each replica of `after`, "any" where it does not matter; empty if it matters for none."""
    dirs_before: Mapping[BrokerId, str] = field(default_factory=dict)
    """The log dir of each present replica, as far as known; undo needs it."""
    reason: str = ""
    """The goal that it serves, in a few words."""
    sizes: Mapping[BrokerId, int] = field(default_factory=dict)
    """The bytes of each present replica on its own disk, as far as known. For tiered topics and lagging
    followers they differ from the leader's.
    """

    @property
    def dir_changes(self) -> Mapping[BrokerId, str]:
        """Brokers whose replica changes its log dir, with the new log dir."""
        if not self.log_dirs:
            return {}
        return {
            broker: path
            for broker, path in zip(self.after, self.log_dirs, strict=False)
            if path != ANY_DIR and broker in self.before and self.dirs_before.get(broker) != path
        }

    @property
    def bytes_to_copy(self) -> int:
        """Bytes to copy over the network and between log dirs."""
        within = sum(self.own_size(broker) for broker in self.dir_changes)
        return self.size_bytes * len(self.adding) + within

    @property
    def told_bytes(self) -> int | None:
        """Return the bytes to copy as a reader is told; None if no broker has told the partition's size."""
        return self.bytes_to_copy if self.sizes or self.size_bytes or not self.adding else None

    def own_size(self, broker: BrokerId) -> int:
        """Return the bytes of a present replica on its own disk; the leader's if unknown."""
        return self.sizes.get(broker, self.size_bytes)


@frozen
class Step(_Change):
    """A part of a move that is submitted as one reassignment."""

    partition: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    size_bytes: int = 0
    log_dirs: tuple[str, ...] = ()


@frozen
class Limits:
    """What must hold at any moment while a plan is executed.

    By default, a fetch returns at most 1 MiB per replica and 10 MiB in all: ten replicas from the same broker
    fill it, and more would only wait for each other. A broker that receives from several leaders fetches from
    each separately.
    """

    extra_copies: int = 1
    """How many more replicas than before or after a partition may have."""
    moves_in: int = 20
    """How many replicas a broker may receive at a time."""
    moves_out: int = 10
    """How many moving replicas a broker may send at a time."""
    fill: float = 0.9
    """The share of a log dir's file system that may be used, with old and new copies counted."""


@frozen
class Promise:
    """One result of the whole plan, which can be checked as a goal.

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


@frozen
class Left:
    """A partition that the request covers but the plan leaves behind."""

    partition: TopicPartition
    why: str


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The moves, their start, their order, and the promised result."""

    cluster_id: str
    created_ms: int
    moves: tuple[Move, ...]
    waves: tuple[tuple[Step, ...], ...] = ()
    """An order, not barriers: the steps of a wave may run together; as one ends, the next begins."""
    limits: Limits = field(default_factory=Limits)
    title: str = ""
    bound_bytes: int | None = None
    """The fewest bytes that any plan with the same goals copies, if known."""
    bound_by: str = ""
    """How the bound was found."""

    topic_ids: Mapping[str, str] = field(default_factory=dict)
    """The id of each topic that moves; none on clusters older than 2.8. A new id means a new topic."""
    promises: tuple[Promise, ...] = ()
    known_partitions: Mapping[str, int] = field(default_factory=dict)
    """How many partitions each topic had when a plan with promises was made: bands count no others."""
    leaves: tuple[Left, ...] = ()
    """A plan that leaves something behind is incomplete."""

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row for each move, in the order in which they begin.

        plan.to_pandas().nlargest(10, "bytes_to_copy")
        """
        return data_frame(plan_rows(self))

    def _repr_html_(self) -> str:
        return plan_html(self)

    @cached_property
    def moves_in_order(self) -> tuple[Move, ...]:
        """Return the moves in the order of their first steps, then those without a wave."""
        moves = {move.partition: move for move in self.moves}
        order = dict.fromkeys(step.partition for wave in self.waves for step in wave)
        return tuple(moves[name] for name in dict.fromkeys((*order, *moves)) if name in moves)

    @property
    def bytes_to_copy(self) -> int:
        return sum(move.bytes_to_copy for move in self.moves)
