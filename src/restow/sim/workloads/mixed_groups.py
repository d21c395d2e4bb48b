"""Consumer groups with members of the protocol `consumer`, alone or beside classic ones.

Groups change their protocol as members come and go. One owner for each partition and epoch, offsets that
never go back, and every acknowledged record read, as in `groups`. A commit may count in an earlier epoch, if
the member has had the partition since (KIP-1251); so epochs of commits and heartbeats are not compared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.sim.group_record import EpochRecord
from restow.sim.modern_consumer import ModernConsumer
from restow.sim.workloads.groups import MOST_MEMBERS, Grouping, GroupOfPlaces, Place
from restow.sim.workloads.plan_draws import pick
from restow.sim.workloads.producing import TOPIC

if TYPE_CHECKING:
    from restow.sim.consumer import SimConsumer
    from restow.sim.workloads.base import WorkContext

_CLASSIC = ("range", "roundrobin")


class ModernPlace(Place):
    """A process that is a member by the protocol `consumer`."""

    starts = 0

    def made_consumer(self) -> SimConsumer:
        self.starts += 1
        consumer = ModernConsumer(self.client(), self.cluster.nodes, self.record, TOPIC, "")
        consumer.name_itself(f"{self.host}-{self.starts}")
        return consumer


class GroupOfBoth(GroupOfPlaces):
    """A group in which each process has a protocol of its own."""

    def __init__(self, context: WorkContext, number: int) -> None:
        chance = context.chance(f"mixed group {number}")
        self.record = EpochRecord(f"mixed-{number}")
        assignor = pick(chance, _CLASSIC)
        self.places = []
        for each in range(1 + chance.randrange(MOST_MEMBERS)):
            kind = ModernPlace if each == 0 or chance.randrange(2) else Place
            host = f"{self.record.group}-{each}"
            self.places.append(kind(context.cluster, host, self.record, assignor, static=False))
        modern = sum(isinstance(place, ModernPlace) for place in self.places)
        context.note(f"group {self.record.group}: {modern} of {len(self.places)} members are not classic")


class MixedGrouping(Grouping):
    """A few groups of both protocols on the producer's topic."""

    name = "mixed-groups"
    is_drawn = False
    kind = GroupOfBoth
