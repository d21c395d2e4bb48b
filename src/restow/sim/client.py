"""Requests of a simulated client, in the versions that both sides speak."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.net.peers import Address, Peers
from restow.wire.messages import ApiVersionsRequest

if TYPE_CHECKING:
    from restow.sim.clock import NodeClock
    from restow.sim.network import SimNetwork
    from restow.wire.messages import Message

_API_VERSIONS = 18
_PORT = 9092


class SimClient:
    """A client with a host of its own and a connection to each broker it talks to."""

    def __init__(self, name: str, network: SimNetwork, clock: NodeClock) -> None:
        self.name, self.network, self.clock = name, network, clock
        self._peers = Peers(network.at(name, clock), clock, _locate, client_id=name)
        self._versions: dict[int, dict[int, tuple[int, int]]] = {}

    async def ask(
        self, request: Message, broker: int, *, version: int | None = None, timeout_s: float = 30.0
    ) -> Message:
        """Return a broker's response. After ConnectionError or TimeoutError the outcome is unknown.

        Without a version, use the newest that both sides support and the request allows.
        """
        key = int(request.API_KEY)
        if broker not in self._versions:
            answer = await self._peers.call(
                broker, _API_VERSIONS, 2, ApiVersionsRequest(), timeout_s=timeout_s
            )
            self._versions[broker] = {
                each.api_key: (each.min_version, each.max_version) for each in answer.api_keys
            }
        if version is None:
            version = min(self._versions[broker][key][1], request.valid_versions[1])
            allowed = request._max_version  # noqa: SLF001  (kafka-python has no other name for it)
            version = version if allowed is None else min(version, allowed)
        return await self._peers.call(broker, key, version, request, timeout_s=timeout_s)

    async def send(
        self, key: int, version: int, body: tuple[bytes], broker: int, timeout_s: float
    ) -> Message:
        """Send an encoded request and return the response."""
        return await self._peers.call(broker, key, version, body, timeout_s=timeout_s)

    def is_connected(self, broker: int) -> bool:
        return self._peers.is_connected(broker)

    def close(self) -> None:
        self._peers.close()


async def _locate(broker: int) -> Address:
    return Address(f"broker-{broker}", _PORT)
