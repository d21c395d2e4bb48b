"""Faults that tests of Kafka clients cause: `cluster.faults` of an `EmbeddedCluster`.

with cluster.faults.error("Produce", ErrorCode.NOT_LEADER_OR_FOLLOWER, times=3) as fault:
    ...
assert fault.hits == 3
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, TypedDict, cast

from restow.cluster.faults import requests
from restow.cluster.faults.asked import is_about_topics
from restow.cluster.faults.disk import FaultDisk, LogDirTrouble
from restow.cluster.faults.handle import ClusterFault
from restow.cluster.faults.names import api_key_of, brokers_of, error_code_of, name_of
from restow.cluster.faults.network import Cut, FaultNetwork, NetworkCuts
from restow.cluster.faults.requests import HandlerTable, RequestFault, RequestFilter
from restow.cluster.faults.slowness import slow_down
from restow.cluster.log.errors import DiskFailure
from restow.errors import InvalidBrokers, InvalidInput
from restow.runtime.clock import SystemClock
from restow.wire.codec import FETCH, PRODUCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Unpack

    from restow.cluster.broker.services import Services
    from restow.cluster.embedded import EmbeddedCluster
    from restow.cluster.faults.requests import Intercept
    from restow.cluster.store.session import EmbeddedSession
    from restow.runtime.network import SystemNetwork
    from restow.wire.error_codes import ErrorCode

_REPAIR_S = 60.0
_LOOK_AGAIN_S = 0.02


class Which(TypedDict, total=False):
    """Limits of a fault: the requests that meet it, and its duration. A limit that is left out allows all."""

    times: int | None
    """How many requests meet it."""
    for_s: float | None
    """After how many seconds it ends."""
    broker: int | Iterable[int] | None
    """The broker or brokers that the requests reach."""
    client_id: str | None
    """The client's `client.id`."""
    topic: str | None
    """The topic that the requests are about."""


class ClusterFaults:
    """The faults of one cluster. They are made and ended on the cluster's own loop.

    Each method starts a fault and returns it. Of several faults that meet a request, the one that was made
    first acts first.
    """

    def __init__(self, cluster: EmbeddedCluster) -> None:
        self._cluster = cluster
        self._clock = SystemClock()
        self._tables: dict[int, HandlerTable] = {}
        self._cuts = NetworkCuts(self._broker_at)
        self.disk = FaultDisk()
        """The disk of all brokers."""
        self._faults: list[ClusterFault] = []

    def world_of(self, broker: int, network: SystemNetwork) -> tuple[FaultNetwork, HandlerTable]:
        """Return the network and the handlers that a new broker must use."""
        table = self._tables[broker] = HandlerTable()
        return FaultNetwork(broker, network, self._cuts, table), table

    @property
    def active(self) -> tuple[ClusterFault, ...]:
        """The faults that have not ended, or whose damage is not repaired yet."""
        self._faults = [fault for fault in self._faults if not fault.is_repaired]
        return tuple(self._faults)

    async def end(self) -> None:
        """End all faults, and wait until everything is repaired. Raises what prevents a repair."""
        faults = self.active
        for fault in faults:
            fault.end()
        for outcome in await asyncio.gather(*(each.ended() for each in faults), return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome

    # Requests

    def error(self, api: str | int, error: ErrorCode | str | int, **which: Unpack[Which]) -> ClusterFault:
        """Answer requests with an error, in every place where Kafka would put it.

        With a `topic`, the other topics of a request are handled as ever.
        """
        code = error_code_of(error)
        happen = requests.answer_with(code, which.get("topic"))
        return self._on_requests(api, f"error {code.name}", lambda _: happen, which)

    def delay(self, api: str | int, by_s: float, **which: Unpack[Which]) -> ClusterFault:
        """Handle requests at once, and answer them `by_s` seconds later."""
        if by_s <= 0:
            raise InvalidInput(f"An answer is delayed by more than {by_s:g} seconds.")
        return self._on_requests(api, "delay", partial(requests.delay_by, seconds=by_s), which)

    def disconnect(self, api: str | int, *, handled: bool = False, **which: Unpack[Which]) -> ClusterFault:
        """Close the connection instead of answering.

        With `handled`, the broker handles the request first, so that the client cannot know its outcome.
        """
        happen = requests.disconnect(handled=handled)
        return self._on_requests(api, "disconnect", lambda _: happen, which)

    def drop(self, api: str | int, *, handled: bool = False, **which: Unpack[Which]) -> ClusterFault:
        """Do not answer, and keep the connection open until the fault ends. `handled` as for `disconnect`."""
        return self._on_requests(api, "drop", partial(requests.drop, handled=handled), which)

    def _on_requests(
        self, api: str | int, what: str, happening: Callable[[ClusterFault], Intercept], which: Which
    ) -> ClusterFault:
        if wrong := which.keys() - Which.__annotations__:
            raise TypeError(
                f"there is no argument {wrong.pop()}; there are {', '.join(Which.__annotations__)}"
            )
        key = api_key_of(api)
        if which.get("topic") is not None and not is_about_topics(key):
            raise InvalidInput(f"{name_of(key)} requests are not about topics: leave out `topic`.")
        brokers = self._brokers(which.get("broker"))
        fault = self._new(f"{what} on {name_of(key)}", times=which.get("times"), for_s=which.get("for_s"))
        picks = RequestFilter(client_id=which.get("client_id"), topic=which.get("topic"))
        met = RequestFault(fault, picks, happening(fault))
        met.remove = self._intercept(brokers, (key,), met.intercept)
        return fault.begin(met.remove)

    def _intercept(
        self, brokers: Iterable[int], keys: tuple[int, ...], intercept: Intercept
    ) -> Callable[[], None]:
        """Put it before the brokers' handlers, and return what takes it away."""
        tables = [self._tables[broker] for broker in brokers]
        for table in tables:
            table.add(keys, intercept)

        def remove() -> None:
            for table in tables:
                table.remove(intercept)

        return remove

    # Network

    def cut_brokers(
        self,
        broker: int | Iterable[int],
        other: int | Iterable[int] | None = None,
        *,
        one_way: bool = False,
        reset: bool = False,
        for_s: float | None = None,
    ) -> ClusterFault:
        """Cut brokers off from others, or from all others.

        Messages wait until the fault ends, and nobody notices. With `reset`, connections are reset and new
        ones refused. With `one_way`, only messages from `broker` to `other` are lost.
        """
        ones = self._brokers(broker)
        others = (self._brokers(None) - ones) if other is None else self._brokers(other)
        if not others or ones & others:
            raise InvalidBrokers("Both sides of a cut need brokers, and no broker is on both sides.")
        fault = self._new(f"cut between brokers {sorted(ones)} and {sorted(others)}", for_s=for_s)
        cut = Cut(fault=fault, brokers=ones, others=others, receives=not one_way, resets=reset)
        return self._cut(cut)

    def cut_clients(
        self,
        broker: int | Iterable[int] | None = None,
        *,
        client_id: str | None = None,
        requests: bool = True,
        answers: bool = True,
        reset: bool = False,
        for_s: float | None = None,
    ) -> ClusterFault:
        """Cut brokers, or all of them, off from clients, or from the one with that client id.

        Messages wait until the fault ends, and nobody notices. With `reset`, connections are reset. Without
        `requests` or without `answers`, those still travel.
        """
        if not (requests or answers):
            raise InvalidInput("A cut stops requests, answers or both.")
        ones = self._brokers(broker)
        fault = self._new(f"cut between brokers {sorted(ones)} and {client_id or 'clients'}", for_s=for_s)
        return self._cut(
            Cut(
                fault=fault,
                brokers=ones,
                others=None,
                client_id=client_id,
                sends=answers,
                receives=requests,
                resets=reset,
            )
        )

    def _cut(self, cut: Cut) -> ClusterFault:
        self._cuts.begin(cut)
        return cut.fault.begin(partial(self._cuts.end, cut))

    def _broker_at(self, host: str, port: int) -> int | None:
        address = f"{host}:{port}"
        return next(
            (each for each, broker in self._cluster.brokers.items() if broker.peer_address == address), None
        )

    # Log dirs

    def fail_log_dir(
        self, broker: int, log_dir: int | str = 0, *, for_s: float | None = None
    ) -> ClusterFault:
        """Let every call on a log dir fail with an I/O error.

        The broker takes the log dir offline at once, or ends if it has no other. When the fault ends, the
        broker is restarted, because a log dir comes back only then.
        """
        fault = self._break(broker, log_dir, is_full=False, for_s=for_s)
        for directory in self._services(broker).logs.directories:
            with suppress(DiskFailure):
                directory.disk.exists(directory.path)
        return fault

    def fill_log_dir(
        self, broker: int, log_dir: int | str = 0, *, for_s: float | None = None
    ) -> ClusterFault:
        """Let a log dir have no space left: the first write takes it offline. Otherwise as `fail_log_dir`."""
        return self._break(broker, log_dir, is_full=True, for_s=for_s)

    def slow_log_dir(
        self, broker: int, log_dir: int | str = 0, *, by_s: float, for_s: float | None = None
    ) -> ClusterFault:
        """Let every Produce and Fetch that needs the log dir take `by_s` seconds longer.

        The broker's own fetches as a follower are slow, too.
        """
        if by_s <= 0:
            raise InvalidInput(f"A log dir is slower by more than {by_s:g} seconds.")
        path = self._log_dir(broker, log_dir)
        fault = self._new(f"slow log dir {path}", for_s=for_s)
        slow = slow_down(fault, by_s, self._cluster.brokers[broker], path)
        return fault.begin(self._intercept(self._tables, (PRODUCE, FETCH), slow))

    def _break(self, broker: int, log_dir: int | str, *, is_full: bool, for_s: float | None) -> ClusterFault:
        path = self._log_dir(broker, log_dir)
        fault = self._new(f"{'full' if is_full else 'failed'} log dir {path}", for_s=for_s)
        trouble = LogDirTrouble(path, is_full, fault)
        self.disk.begin(trouble)
        return fault.begin(partial(self.disk.end, trouble), repair=partial(self._restart, broker, path))

    async def _restart(self, broker: int, path: str) -> None:
        """Restart a broker that has taken the log dir offline, or has ended because of it."""
        server = self._cluster.brokers[broker]
        is_hit = path in server.services.logs.offline if server.is_running else server.has_failed
        if not is_hit:
            return
        await server.stop()
        await server.start()
        await self._cluster.settled()

    def _log_dir(self, broker: int, log_dir: int | str) -> str:
        self._services(broker)
        paths = self._cluster.brokers[broker].options.log_dirs
        if isinstance(log_dir, int) and 0 <= log_dir < len(paths):
            return paths[log_dir]
        if log_dir not in paths:
            known = ", ".join(f"{number} ({path})" for number, path in enumerate(paths))
            raise InvalidInput(f"Broker {broker} has no log dir {log_dir}; it has {known}.")
        return str(log_dir)

    # The store

    def expire_session(self, broker: int) -> ClusterFault:
        """Let a broker's session with the store expire. The broker starts again on a new session at once.

        The fault ends when the broker is back.
        """
        session = cast("EmbeddedSession", self._services(broker).store)
        fault = self._new(f"expired session of broker {broker}")
        session.expire()
        fault.hit()
        return fault.begin(repair=partial(self._until_back, broker, session.session_id))

    async def _until_back(self, broker: int, session_id: int) -> None:
        server = self._cluster.brokers[broker]
        async with asyncio.timeout(_REPAIR_S):
            while not (server.is_running and server.services.store.session_id != session_id):
                if server.has_failed:
                    return
                await self._clock.sleep(_LOOK_AGAIN_S)
        await self._cluster.settled()

    # Shared

    def _new(self, what: str, *, times: int | None = None, for_s: float | None = None) -> ClusterFault:
        fault = ClusterFault(what, self._clock, times=times, for_s=for_s)
        self._faults = [*self.active, fault]
        return fault

    def _brokers(self, given: int | Iterable[int] | None) -> frozenset[int]:
        if not self._cluster.brokers:
            raise RuntimeError("the cluster has not been started")
        return brokers_of(given, self._cluster.brokers.keys())

    def _services(self, broker: int) -> Services:
        self._brokers(broker)
        server = self._cluster.brokers[broker]
        if not server.is_running:
            raise InvalidBrokers(f"Broker {broker} is not running.")
        return server.services
