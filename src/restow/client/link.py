"""Connections to a cluster: one request, one answer.

kafka-python's client does the connecting, encrypting, authenticating and agreeing on versions; what is sent
and what comes back are Kafka's messages as they are, so that no error code is lost on the way. Its calls
block, and run in threads of their own.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from restow.client.errors import BrokerError, ClientError, Unreachable
from restow.errors import InvalidInput
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import MetadataRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.wire.messages import Message

_TRIES = 5
_PAUSE_S = 0.2
_ADDRESS = re.compile(r"(\[[^\[\]\s]+\]|[^\[\]:\s]+)(:(?P<port>[0-9]{1,5}))?")
_PORTS = range(1, 65_536)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to reach a cluster. `options` are kafka-python's by its names; they may hold secrets."""

    bootstrap: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    connect_timeout_s: float = 5.0


class Link:
    """An open connection to a cluster. Made by `open_link`."""

    def __init__(self, client: Any, settings: Settings) -> None:
        self._client = client
        # Not promised by kafka-python, which is why its minor version is pinned.
        self._manager = client._manager  # noqa: SLF001
        self._settings = settings
        self._controller: int | None = None

    @property
    def timeout_ms(self) -> int:
        return int(self._settings.timeout_s * 1000)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that the cluster last told of."""
        return tuple(sorted(node.node_id for node in self._manager.cluster.brokers()))

    async def ask(self, request: Message, broker: int | None = None) -> Message:
        """One broker's answer; of any, if none is named."""
        from kafka.errors import KafkaError

        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_PAUSE_S * 2**attempt)
            try:
                return await asyncio.to_thread(self._ask, request, broker)
            except KafkaError as error:
                if not getattr(error, "retriable", False) or attempt == _TRIES - 1:
                    raise _translated(error, broker, self._settings) from error
        raise AssertionError("the last try returns or raises")

    async def ask_controller(self, request: Message, code_of: Callable[[Message], int]) -> Message:
        """The controller's answer, whoever that is by now."""
        refusal: ClientError = BrokerError(ErrorCode.NOT_CONTROLLER)
        for attempt in range(_TRIES):
            if self._controller is None:
                self._controller = await self._find_controller()
            try:
                answer = await self.ask(request, self._controller)
            except Unreachable as error:
                refusal = error
            else:
                if code_of(answer) != ErrorCode.NOT_CONTROLLER:
                    return answer
            self._controller = None
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise refusal

    async def close(self) -> None:
        await asyncio.to_thread(self._client.close)

    def _ask(self, request: Message, broker: int | None) -> Message:
        cluster = self._manager.cluster

        async def send() -> Message:
            if broker is not None and cluster.broker_metadata(broker) is None:
                await cluster.refresh_metadata()  # it may have joined since we last asked
            return await self._manager.send(request, node_id=broker, request_timeout_ms=self.timeout_ms)

        return self._manager.run(send)

    async def _find_controller(self) -> int:
        for attempt in range(_TRIES):
            answer = await self.ask(MetadataRequest(topics=[]))
            if answer.controller_id >= 0:
                return int(answer.controller_id)
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise Unreachable("the cluster has no controller at the moment: try again when it has elected one")


async def open_link(settings: Settings) -> Link:
    """Connect, or say in one sentence why that cannot be done."""
    return Link(await asyncio.to_thread(_connect, settings), settings)


def _connect(settings: Settings) -> Any:
    from kafka.admin import KafkaAdminClient
    from kafka.errors import KafkaError

    class Client(KafkaAdminClient):  # type: ignore[misc]
        """Hangs up when it cannot connect; the library's own leaves its thread and its sockets behind."""

        def __init__(self, **options: Any) -> None:
            try:
                super().__init__(**options)
            except BaseException:
                if hasattr(self, "_net"):
                    self._closed = False
                    self.close()
                raise

    servers = _servers(settings.bootstrap)
    try:
        return Client(
            bootstrap_servers=servers,
            client_id="restow",
            request_timeout_ms=int(settings.timeout_s * 1000),
            bootstrap_timeout_ms=int(settings.connect_timeout_s * 1000),
            **settings.options,
        )
    except KafkaError as error:
        raise _translated(error, None, settings) from error
    except (OSError, ValueError) as error:
        raise Unreachable(f"cannot connect to {settings.bootstrap}: {error}") from error


def _servers(bootstrap: str) -> list[str]:
    """One by one, each checked: what cannot be an address is no matter of waiting for an answer."""
    found = [each.strip() for each in bootstrap.split(",")]
    for each in found:
        address = _ADDRESS.fullmatch(each)
        if address is None or int(address["port"] or 1) not in _PORTS:
            raise InvalidInput(
                f"bootstrap servers: {each!r} is not HOST:PORT; write them like localhost:9092,localhost:9093"
            )
    return found


def _translated(error: Exception, broker: int | None, settings: Settings) -> Unreachable:
    where = settings.bootstrap if broker is None else f"broker {broker}"
    said = str(error) or type(error).__name__
    return Unreachable(f"{where} does not answer ({said}): is the address right, and is it up?")
