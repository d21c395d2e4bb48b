"""The copies of a step: their keys, the links that they pass, and the room that the step frees at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import BrokerId, Step, TopicPartition
    from restow.plan.flow.loads import Holding


class CopyKey(NamedTuple):
    """One replica that is copied: to a broker, or to another log dir of its broker."""

    partition: TopicPartition
    broker: BrokerId
    within: bool = False


class Start(NamedTuple):
    """A step to begin: the broker that sends, and the log dirs that receive."""

    step: Step
    sender: BrokerId | None
    arrivals: Mapping[BrokerId, str]
    only_within: bool = False
    """Whether it is a request to a broker about its log dirs, beside the partition's reassignment."""

    @property
    def key(self) -> tuple[TopicPartition, BrokerId | None]:
        """Return the partition, and the broker if only its log dirs are concerned."""
        return self.step.partition, next(iter(self.arrivals)) if self.only_within else None


class Leg(NamedTuple):
    """One copy: the links that it passes, without that of the pair of brokers, and the log dir it fills."""

    key: CopyKey
    links: tuple[int, int, int]
    place: int


class Itinerary(NamedTuple):
    """A step with all that can be said before it begins. Rehearsals on one snapshot share it."""

    start: Start
    key: tuple[TopicPartition, BrokerId | None]
    legs: tuple[Leg, ...]
    leaves: tuple[tuple[int, float | None], ...]
    """The log dirs of replicas that it replaces, and their own sizes as far as known."""
    holding: Holding
