"""Outdated requests of controllers are refused: nothing comes back that was overtaken.

A broker that has obeyed a controller refuses all earlier ones (STALE_CONTROLLER_EPOCH), however late their
requests come. And it refuses requests that were meant for its life before a restart (STALE_BROKER_EPOCH,
KIP-380). Both are seen in the responses, so this knows nothing of what brokers remember.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.store.znodes import BrokerRegistration
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.sim.cluster import SimCluster
    from restow.sim.network import SimConnection

_NAMES = {4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata"}
_FIRST_WITH_KRAFT_FLAG = {4: 7, 5: 4, 6: 8}
"""The versions from which on a flag follows the controller's id."""
_HEADER, _EPOCHS, _CODE = Struct(">hhih"), Struct(">iq"), Struct(">h")
_NO_TAGS, _ID, _FLAG, _NUMBER = 1, 4, 1, 4
"""Sizes in bytes."""


class _Asked(NamedTuple):
    """A request that was delivered, and the code with which it has to be refused."""

    api_key: int
    controller_epoch: int
    refusal: ErrorCode
    why: str


class Fencing:
    """Looks at the requests of controllers and their responses."""

    def __init__(self, cluster: SimCluster) -> None:
        self._tree = cluster.store.tree
        self._brokers = {node.host: node.id for node in cluster.nodes.values()}
        self._asked: dict[tuple[SimConnection, int], _Asked] = {}
        self._obeyed: dict[tuple[int, int], int] = {}
        """The latest controller epoch that each broker has obeyed in each of its lives."""
        self.broken: list[str] = []
        """What was wrong since somebody looked last."""
        cluster.network.asked = self._ask
        cluster.network.answered = self._answer

    def _ask(self, connection: SimConnection, payload: bytes) -> None:
        if payload[0] or payload[1] not in _NAMES or connection.node not in self._brokers:
            return
        number, controller_epoch, broker_epoch = _epochs(payload)
        broker = self._brokers[connection.node]
        life = self._registered(broker)
        obeyed = self._obeyed.get((broker, life), 0)
        refusal, why = ErrorCode.NONE, ""
        if broker_epoch < life:
            refusal, why = ErrorCode.STALE_BROKER_EPOCH, f"it has the broker epoch {life} since its restart"
        elif controller_epoch < obeyed:
            refusal, why = ErrorCode.STALE_CONTROLLER_EPOCH, f"it has obeyed controller epoch {obeyed}"
        self._asked[connection, number] = _Asked(payload[1], controller_epoch, refusal, why)

    def _answer(self, connection: SimConnection, payload: bytes) -> None:
        if not self._asked:
            return
        asked = self._asked.pop((connection, int.from_bytes(payload[:4], "big")), None)
        if asked is None:
            return
        if _CODE.unpack_from(payload, _NUMBER + _NO_TAGS)[0]:
            return
        broker = self._brokers[connection.node]
        if asked.refusal:
            self.broken.append(
                f"broker {broker} obeyed a {_NAMES[asked.api_key]} request of controller epoch "
                f"{asked.controller_epoch}, although {asked.why}"
            )
        key = broker, self._registered(broker)
        self._obeyed[key] = max(self._obeyed.get(key, 0), asked.controller_epoch)

    def _registered(self, broker: int) -> int:
        """Return the transaction of a broker's registration, which is its broker epoch; 0 without one."""
        node = self._tree.find(BrokerRegistration.path(broker))
        return 0 if node is None else node.stat.czxid


def _epochs(request: bytes) -> tuple[int, int, int]:
    """Return the request's number and the epochs of controller and broker, which are at its beginning.

    Such requests may have all partitions, and reading them whole would take longer than any other check.
    """
    key, version, number, client_size = _HEADER.unpack_from(request)
    at = _HEADER.size + max(client_size, 0) + _NO_TAGS + _ID
    if version >= _FIRST_WITH_KRAFT_FLAG[key]:
        at += _FLAG
    return number, *_EPOCHS.unpack_from(request, at)
