"""Log dirs that get no new replicas (`cordoned.log.dirs`, KIP-1066), and brokers that have only such ones.

A broker whose log dirs are all cordoned says so in its registration, and replica placement leaves it out.
Manual assignments may still use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.config.changes import InvalidChange
from restow.cluster.store.znodes import BrokerRegistration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.config.table import Value
    from restow.cluster.store import Store
    from restow.model import Broker

CORDONED_LOG_DIRS = "cordoned.log.dirs"
_ALL = ("*",)


def cordoned_dirs(value: Value | None, log_dirs: Sequence[str]) -> frozenset[str]:
    """Return the log dirs that a value of the config names."""
    named = value if isinstance(value, tuple) else ()
    return frozenset(log_dirs if named == _ALL else set(named).intersection(log_dirs))


def check_cordoned(value: Value | None, log_dirs: Sequence[str]) -> None:
    """Raise InvalidChange if the config names anything but log dirs of the broker."""
    named = value if isinstance(value, tuple) else ()
    strange = sorted(set(named) - set(log_dirs))
    if strange and named != _ALL:
        raise InvalidChange(
            f"{CORDONED_LOG_DIRS} may name log dirs of the broker, or be *; {', '.join(strange)} is none of "
            f"{', '.join(log_dirs)}"
        )


async def without_cordoned(store: Store, brokers: Sequence[Broker]) -> tuple[Broker, ...]:
    """Return the brokers that have a log dir for new replicas."""
    paths = [BrokerRegistration.path(each.id) for each in brokers]
    nodes = await store.get_each(paths)
    return tuple(
        broker
        for broker, path, node in zip(brokers, paths, nodes, strict=True)
        if node is None or not BrokerRegistration.decode(node.data, path).cordoned
    )
