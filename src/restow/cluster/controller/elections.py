"""The five leader elections. Pure functions; None means that no replica can lead.

    new partition        first live replica                    ISR = all live replicas
    offline              first live replica in the ISR         ISR loses dead replicas
      …unclean           first live replica                    ISR = the new leader
    reassignment         first live replica of the target      ISR stays
                         that is in the ISR
    preferred            the first replica if live, in ISR     ISR stays
    controlled shutdown  first live replica in the ISR that    ISR loses brokers that are shutting down
                         is not shutting down

`live` holds the brokers on which the partition's replica is online.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container

NO_LEADER = -1


class Election(Enum):
    """The reason for an election."""

    OFFLINE = "offline"
    UNCLEAN = "unclean"
    """Like OFFLINE, but a replica outside the ISR may lead."""
    REASSIGNMENT = "reassignment"
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled shutdown"


class Choice(NamedTuple):
    """The result of an election."""

    leader: int
    isr: tuple[int, ...]


def for_new(replicas: tuple[int, ...], live: Container[int]) -> Choice | None:
    """Choose the first leader of a partition."""
    able = tuple(replica for replica in replicas if replica in live)
    return Choice(able[0], able) if able else None


def for_offline(
    replicas: tuple[int, ...], isr: tuple[int, ...], live: Container[int], *, unclean: bool = False
) -> Choice | None:
    """Choose a leader for a partition that lost its own."""
    able = [replica for replica in replicas if replica in live]
    for replica in able:
        if replica in isr:
            return Choice(replica, tuple(each for each in isr if each in live))
    return Choice(able[0], (able[0],)) if unclean and able else None


def for_reassignment(target: tuple[int, ...], isr: tuple[int, ...], live: Container[int]) -> Choice | None:
    """Choose a leader among the target replicas."""
    for replica in target:
        if replica in live and replica in isr:
            return Choice(replica, isr)
    return None


def for_preferred(replicas: tuple[int, ...], isr: tuple[int, ...], live: Container[int]) -> Choice | None:
    """Choose the preferred replica."""
    return for_reassignment(replicas[:1], isr, live)


def for_controlled_shutdown(
    replicas: tuple[int, ...], isr: tuple[int, ...], live: Container[int], leaving: Container[int]
) -> Choice | None:
    """Choose a leader on a broker that stays. `live` includes brokers that are shutting down."""
    for replica in replicas:
        if replica in live and replica in isr and replica not in leaving:
            return Choice(replica, tuple(each for each in isr if each not in leaving))
    return None


def without(replica: int, leader: int, isr: tuple[int, ...]) -> Choice:
    """Return leader and ISR without a replica. The last ISR member stays: only it has all the data."""
    return Choice(
        NO_LEADER if leader == replica else leader,
        isr if len(isr) == 1 else tuple(each for each in isr if each != replica),
    )
