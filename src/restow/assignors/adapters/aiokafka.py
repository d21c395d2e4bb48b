"""Drop-ins for aiokafka's `AIOKafkaConsumer(partition_assignment_strategy=[…])`.

    AIOKafkaConsumer("t", group_id="g", partition_assignment_strategy=[Sticky])

aiokafka does not instantiate a class that it is given, but calls it directly, for all consumers alike. An
assignor that remembers the partitions of its consumer must know which consumer calls it. Given as a class, it
uses the current task, since aiokafka runs each consumer's rebalances in a task of its own. An instance
belongs to one consumer.

aiokafka supports the eager protocol only, and as a leader it reads neither the owned partitions, nor the
racks, nor the instance ids of the members. A cooperative assignor cannot work that way: members of other
clients would still read a partition that it gives to another member, or no member would join the second round
in which it gives it out. So there is none here; `sticky` moves as little. aiokafka does not pass the
generation to an assignor either: where two members claim a partition, a member with a generation wins over
one without.
"""

from __future__ import annotations

import asyncio
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

try:
    from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
    from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
except ImportError as error:
    raise ImportError("aiokafka is needed for this: pip install restow[aiokafka]") from error

from restow.assignors.adapters.consumer_state import ConsumerState, assignment_fields, class_for
from restow.errors import InvalidInput
from restow.model import Member

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["AiokafkaAssignor", "Range", "RoundRobin", "Sticky", "adapter"]


class _OnAnInstance:
    """A method that, called on the class, is called on the instance of the current task's consumer."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self.__doc__ = function.__doc__

    def __get__(self, instance: AiokafkaAssignor | None, owner: type[AiokafkaAssignor]) -> Callable[..., Any]:
        if instance is not None:
            return MethodType(self._function, instance)
        return lambda *arguments: self._function(owner.of_this_task(), *arguments)


class AiokafkaAssignor(AbstractPartitionAssignor):  # type: ignore[misc]
    """Adapts one of our assignors to aiokafka. Subclasses name the assignor."""

    name: ClassVar[str]

    def __init__(self) -> None:
        self._consumer = ConsumerState(self.name)
        if self._consumer.assignor.cooperative:
            raise InvalidInput(
                f"aiokafka cannot rebalance cooperatively, which {self.name!r} needs: "
                "use 'sticky', or kafka-python's consumer"
            )

    @classmethod
    def of_this_task(cls) -> AiokafkaAssignor:
        """Return the instance of the consumer that is rebalancing in the current task."""
        try:
            task = asyncio.current_task()
        except RuntimeError:  # no loop is running, so no consumer is rebalancing
            task = None
        if task is None:
            return cls()
        mine = _instances.setdefault(task, {})
        if cls not in mine:
            mine[cls] = cls()
        return mine[cls]

    @_OnAnInstance
    def metadata(self, topics: Iterable[str]) -> bytes:
        """Return this consumer's subscription; as bytes, because the client's class has no generation."""
        return self._consumer.subscription(topics).encode()

    @_OnAnInstance
    def on_assignment(self, assignment: ConsumerProtocolMemberAssignment) -> None:
        """Remember this consumer's assignment."""
        self._consumer.remember(assignment.partitions())

    @_OnAnInstance
    def assign(self, cluster: Any, members: Mapping[str, Any]) -> dict[str, ConsumerProtocolMemberAssignment]:
        """Assign the partitions of the whole group, when this consumer is its leader."""
        joined = [
            Member(id=member, topics=tuple(said.subscription), user_data=said.user_data)
            for member, said in members.items()
        ]
        given = self._consumer.assign(joined, cluster.partitions_for_topic)
        return {
            member: ConsumerProtocolMemberAssignment(*assignment_fields(partitions))
            for member, partitions in given.items()
        }


_instances: WeakKeyDictionary[asyncio.Task[Any], dict[type[AiokafkaAssignor], AiokafkaAssignor]]
_instances = WeakKeyDictionary()


class Range(AiokafkaAssignor):
    """Kafka's range assignor: consecutive partitions of each topic."""

    name = "range"


class RoundRobin(AiokafkaAssignor):
    """Kafka's round-robin assignor: one partition to each in turn."""

    name = "roundrobin"


class Sticky(AiokafkaAssignor):
    """Kafka's sticky assignor: balanced, and as little moved as possible."""

    name = "sticky"


def adapter(name: str) -> type[AiokafkaAssignor]:
    """Return a drop-in class for any eager assignor that Restow knows, plugins included."""
    made = class_for(name, AiokafkaAssignor)
    made()
    return made
