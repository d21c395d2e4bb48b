"""Who leads a partition: the five elections. Pure; None means that nobody can.

    new partition        first live replica                    ISR = all live replicas
    offline              first live replica in the ISR         ISR loses the dead
      …unclean           first live replica                    ISR = that one
    reassignment         first live replica of the target      ISR stays
                         that is in the ISR
    preferred            the first replica if live, in ISR     ISR stays
    controlled shutdown  first live replica in the ISR that    ISR loses those that are shutting down
                         is not shutting down

`live` holds the brokers on which the replica of this partition can be used.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container

NO_LEADER = -1


class Election(Enum):
    """Why a leader is wanted."""

    OFFLINE = "offline"
    UNCLEAN = "unclean"
    """As for an offline partition, and a replica out of the ISR will do."""
    REASSIGNMENT = "reassignment"
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled shutdown"


class Choice(NamedTuple):
    """What an election came to."""

    leader: int
    isr: tuple[int, ...]


def for_new(replicas: tuple[int, ...], live: Container[int]) -> Choice | None:
    """The first leader of a partition."""
    able = tuple(replica for replica in replicas if replica in live)
    return Choice(able[0], able) if able else None


def for_offline(
    replicas: tuple[int, ...], isr: tuple[int, ...], live: Container[int], *, unclean: bool = False
) -> Choice | None:
    """A leader for a partition that lost its own."""
    able = [replica for replica in replicas if replica in live]
    for replica in able:
        if replica in isr:
            return Choice(replica, tuple(each for each in isr if each in live))
    return Choice(able[0], (able[0],)) if unclean and able else None


def for_reassignment(target: tuple[int, ...], isr: tuple[int, ...], live: Container[int]) -> Choice | None:
    """A leader among the replicas that are to stay."""
    for replica in target:
        if replica in live and replica in isr:
            return Choice(replica, isr)
    return None


def for_preferred(replicas: tuple[int, ...], isr: tuple[int, ...], live: Container[int]) -> Choice | None:
    """The replica that should lead when all is well."""
    return for_reassignment(replicas[:1], isr, live)


def for_controlled_shutdown(
    replicas: tuple[int, ...], isr: tuple[int, ...], live: Container[int], leaving: Container[int]
) -> Choice | None:
    """A leader on a broker that stays. `live` counts those that are leaving, too."""
    for replica in replicas:
        if replica in live and replica in isr and replica not in leaving:
            return Choice(replica, tuple(each for each in isr if each not in leaving))
    return None


def without(replica: int, leader: int, isr: tuple[int, ...]) -> Choice:
    """Leader and ISR when a replica is gone. The last of an ISR stays in it: it alone has everything."""
    return Choice(
        NO_LEADER if leader == replica else leader,
        isr if len(isr) == 1 else tuple(each for each in isr if each != replica),
    )
