"""The admin and the executor of a simulated process: production code over simulated connections.

process = SimProcess("tool", cluster.network, disk)
async with admin_of(process, cluster) as admin:
    await start.execute(run_context(process, admin, …), plan, options, listener)
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from restow.client import KafkaAdmin, Unreachable
from restow.client.link import Link
from restow.execute.run.lock import ProcessIdentity
from restow.execute.run.start import RunContext
from restow.sim.client import SimClient
from restow.wire.messages import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from restow.runtime.chance import Chance
    from restow.sim.clock import NodeClock
    from restow.sim.disk import SimDisk
    from restow.sim.network import SimNetwork
    from restow.sim.process import SimProcess
    from restow.wire.messages import Message

_CONNECT_S = 5.0
_BACKOFF_S = 1.0


class SimTransport:
    """`restow.client.link.Transport` over connections of a simulated network."""

    def __init__(
        self,
        client: SimClient,
        process: SimProcess,
        bootstrap: Iterable[int],
        sent: Callable[[Message], None] | None = None,
    ) -> None:
        """`sent` is called with every request before it is sent."""
        self._client, self._process, self._bootstrap = client, process, tuple(bootstrap)
        self._sent = sent
        self._failed_s: dict[int, float] = {}
        self.brokers: tuple[int, ...] = ()

    async def refresh(self) -> None:
        """Ask for the brokers, or raise Unreachable if no one answers."""
        for broker in self.brokers or self._bootstrap:
            try:
                await self.ask(MetadataRequest(topics=[]), broker, _CONNECT_S)
            except Unreachable:
                continue
            return
        raise _unreachable("no broker answers")

    async def ask(self, request: Message, broker: int | None, timeout_s: float) -> Message:
        if broker is None:
            broker = min(self.brokers or self._bootstrap, key=self.reluctance)
        elif self.brokers and broker not in self.brokers:
            await self.refresh()
            if broker not in self.brokers:
                raise _unreachable(f"broker {broker} is not in the metadata")
        self._process.check_alive()
        if self._sent is not None:
            self._sent(request)
        try:
            answer = await self._client.ask(request, broker, timeout_s=timeout_s)
        except (ConnectionError, TimeoutError) as error:
            self._failed_s[broker] = self._client.clock.monotonic_s()
            refused = isinstance(error, ConnectionRefusedError)
            raise _unreachable(f"broker {broker} does not answer ({error})", down=refused) from error
        self._failed_s.pop(broker, None)
        if request.API_KEY == MetadataRequest.API_KEY and answer.brokers:
            self.brokers = tuple(sorted(each.node_id for each in answer.brokers))
        return answer

    def reluctance(self, broker: int) -> tuple[bool, bool]:
        failed_s = self._failed_s.get(broker)
        has_failed = failed_s is not None and self._client.clock.monotonic_s() - failed_s < _BACKOFF_S
        return not self._client.is_connected(broker), has_failed

    async def another(self) -> SimTransport:
        client = SimClient(self._client.name, self._client.network, self._client.clock)
        return await open_transport(client, self._process, self._bootstrap, self._sent)

    async def close(self) -> None:
        self._process.check_alive()
        self._client.close()


def _unreachable(why: str, *, down: bool = False) -> Unreachable:
    error = Unreachable(why)
    error.retriable, error.down = True, down
    return error


async def open_transport(
    client: SimClient,
    process: SimProcess,
    bootstrap: Iterable[int],
    sent: Callable[[Message], None] | None = None,
) -> SimTransport:
    """Connect to the first broker that answers."""
    transport = SimTransport(client, process, bootstrap, sent)
    await transport.refresh()
    return transport


@asynccontextmanager
async def connected_admin(
    process: SimProcess,
    network: SimNetwork,
    clock: NodeClock,
    bootstrap: Iterable[int],
    sent: Callable[[Message], None] | None = None,
) -> AsyncIterator[KafkaAdmin]:
    """Open an admin, and close it when the context ends. `sent` is called with every request."""
    client = SimClient(process.host, network, clock)
    admin = KafkaAdmin(Link(await open_transport(client, process, bootstrap, sent)))
    try:
        yield admin
    finally:
        await admin.close()


def run_context(
    process: SimProcess, admin: KafkaAdmin, clock: NodeClock, disk: SimDisk, chance: Chance
) -> RunContext:
    """Return the context of a run in this process, with its journals on this disk."""
    return RunContext(
        admin=admin,
        clock=clock,
        disk=process.own(disk),
        root="/state",
        group_locks=admin.group_lock,
        chance=chance,
        process=ProcessIdentity(pid=1, host=process.host, user="simulation"),
    )
