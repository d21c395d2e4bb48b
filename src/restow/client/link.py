"""Connections to a cluster: one request, one answer.

kafka-python's client does the connecting, encrypting, authenticating and agreeing on versions; what is sent
and what comes back are Kafka's messages as they are, so that no error code is lost on the way. Its calls
block, and run in threads of their own.
"""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from restow.client.beside import first_answer
from restow.client.errors import BrokerError, ClientError, LoginRefused, Unreachable
from restow.client.secrets import keep_credentials_out_of_logs
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
_ASKED_BESIDE = 8
_LONG_S = 1.0
_ASKED_AT_ONCE = 64
"""Brokers that do not answer hold a thread each until their time is up, and must not starve the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to reach a cluster. `options` are kafka-python's by its names; they may hold secrets."""

    bootstrap: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    timeout_s: float = 30.0
    connect_timeout_s: float = 5.0


class _Silent(Unreachable):
    """It was there, or nobody knows, and said nothing until time was up."""


class Link:
    """An open connection to a cluster. Made by `open_link`."""

    def __init__(self, client: Any, settings: Settings) -> None:
        self._client = client
        # Not promised by kafka-python, which is why its minor version is pinned.
        self._manager = client._manager  # noqa: SLF001
        self._settings = settings
        self._controller: int | None = None
        self._answered: int | None = None
        self._threads = ThreadPoolExecutor(_ASKED_AT_ONCE, thread_name_prefix="restow-link")

    @property
    def timeout_ms(self) -> int:
        return int(self._settings.timeout_s * 1000)

    @property
    def brokers(self) -> tuple[int, ...]:
        """The brokers that the cluster last told of."""
        return tuple(sorted(node.node_id for node in self._manager.cluster.brokers()))

    async def ask(self, request: Message, broker: int | None = None) -> Message:
        """One broker's answer; of any, if none is named. All tries together have the time of one."""
        from kafka.errors import KafkaError

        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._settings.timeout_s
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_PAUSE_S * 2**attempt)
            try:
                return await loop.run_in_executor(self._threads, self._ask, request, broker)
            except KafkaError as error:
                again = getattr(error, "retriable", False) and loop.time() < deadline_s
                if not again or attempt == _TRIES - 1:
                    raise _translated(error, broker, self._settings) from error
        raise AssertionError("the last try returns or raises")

    async def ask_anyone(self, request: Message) -> Message:
        """What all brokers know, from the one that answered last, or from another if that takes long."""
        candidates = sorted(self.brokers, key=self._reluctance)[:_ASKED_BESIDE] or (None,)
        questions = [partial(self.ask, request, broker) for broker in candidates]
        at, answer = await first_answer(questions, _LONG_S)
        self._answered = candidates[at]
        return answer

    def _reluctance(self, broker: int) -> tuple[bool, bool, bool]:
        """Rather those that we are connected to, and not those that could not be reached a moment ago."""
        connection = self._manager._conns.get(broker)  # noqa: SLF001
        connected = connection is not None and connection.connected
        return not connected, self._manager.connection_delay(broker) > 0, broker != self._answered

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
        self._threads.shutdown(wait=False)

    def _ask(self, request: Message, broker: int | None) -> Message:
        cluster = self._manager.cluster

        async def send() -> Message:
            if broker is not None and cluster.broker_metadata(broker) is None:
                await cluster.refresh_metadata()  # it may have joined since we last asked
            return await self._manager.send(request, node_id=broker, request_timeout_ms=self.timeout_ms)

        return self._manager.run(send)

    async def _find_controller(self) -> int:
        for attempt in range(_TRIES):
            answer = await self.ask_anyone(MetadataRequest(topics=[]))
            if answer.controller_id >= 0:
                return int(answer.controller_id)
            await asyncio.sleep(_PAUSE_S * 2**attempt)
        raise Unreachable("the cluster has no controller at the moment: try again when it has elected one")


async def open_link(settings: Settings) -> Link:
    """Connect, or say in one sentence why that cannot be done.

    Of several servers the library may wait for one that hangs until time is up: then each is tried by itself.
    A single one is, too, if it said nothing: it may only have been busy.
    """
    try:
        return Link(await asyncio.to_thread(_connect, settings), settings)
    except LoginRefused:
        raise
    except Unreachable as error:
        servers = _servers(settings.bootstrap)
        if len(servers) == 1 and not isinstance(error, _Silent):
            raise
        alone = (replace(settings, bootstrap=each) for each in servers)
        tried = await asyncio.gather(
            *(asyncio.to_thread(_connect, each) for each in alone), return_exceptions=True
        )
        first, *others = [each for each in tried if not isinstance(each, BaseException)] or [None]
        await asyncio.gather(*(asyncio.to_thread(each.close) for each in others))
        if first is None:
            raise
        return Link(first, settings)


def _connect(settings: Settings) -> Any:
    from kafka.admin import KafkaAdminClient
    from kafka.errors import KafkaError
    from kafka.net.compat import KafkaNetClient

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

    def watched(**options: Any) -> Any:
        client = KafkaNetClient(**options)
        _remember_failures(client._manager, settings, failures)  # noqa: SLF001
        return client

    servers = _servers(settings.bootstrap)
    failures: list[Unreachable] = []
    keep_credentials_out_of_logs()
    options = {"client_id": "restow", **settings.options}
    try:
        client = Client(
            bootstrap_servers=servers,
            request_timeout_ms=int(settings.timeout_s * 1000),
            bootstrap_timeout_ms=int(settings.connect_timeout_s * 1000),
            kafka_client=watched,
            **options,
        )
        del client._manager.get_connection  # noqa: SLF001  (the watched one; the library's own is back)
        return client
    except KafkaError as error:
        said = isinstance(error, _refusals()) or not failures
        raise (_translated(error, None, settings) if said else failures[-1]) from error
    except (OSError, ValueError) as error:
        raise Unreachable(f"cannot connect to {settings.bootstrap}: {error}") from error


def _remember_failures(manager: Any, settings: Settings, failures: list[Unreachable]) -> None:
    """Why each connection failed while we try to get in, of which the library tells only its log.

    A login that was refused is not tried again and again: that is how accounts get locked. A broker that
    refuses hangs up at once, and often the library loses its answer over that; so one that hangs up on a
    login twice is taken to have refused it.
    """
    from kafka.errors import KafkaConnectionError, SaslAuthenticationFailedError

    get_connection = manager.get_connection
    refused: dict[Any, Exception] = {}
    hung_up: set[Any] = set()

    def remember(error: Exception) -> None:
        failures.append(_translated(error, None, settings))

    def watched(node_id: Any, *given: Any, **named: Any) -> Any:
        if node_id in refused:
            raise refused[node_id]
        known = node_id in manager._conns  # noqa: SLF001
        connection = get_connection(node_id, *given, **named)
        if known:
            return connection
        log_in = connection._sasl_authenticate  # noqa: SLF001

        async def logged_in(*more: Any, **others: Any) -> None:
            try:
                await log_in(*more, **others)
            except _refusals() as error:
                refused[node_id] = error.with_traceback(None)
                raise
            except KafkaConnectionError:
                if node_id in hung_up:
                    refused[node_id] = SaslAuthenticationFailedError("it hung up on the login, twice")
                hung_up.add(node_id)
                raise

        connection._sasl_authenticate = logged_in  # noqa: SLF001
        connection.close_future.add_errback(remember)
        return connection

    manager.get_connection = watched


def _refusals() -> tuple[type[Exception], ...]:
    from kafka.errors import SaslAuthenticationFailedError, UnsupportedSaslMechanismError

    return SaslAuthenticationFailedError, UnsupportedSaslMechanismError


def _silences() -> tuple[type[Exception], ...]:
    from kafka.errors import KafkaTimeoutError, RequestTimedOutError

    return KafkaTimeoutError, RequestTimedOutError


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
    """In one sentence, with what to look at."""
    where = settings.bootstrap if broker is None else f"broker {broker}"
    said = str(error) or type(error).__name__
    protocol = settings.options.get("security_protocol", "PLAINTEXT")
    if isinstance(error, _refusals()):
        return LoginRefused(f"{where} refuses the login ({said}): check user, password and sasl.mechanism")
    if "Handshake failed" in said:
        return Unreachable(
            f"{where}: no TLS connection ({said}): check that it speaks TLS at this port, the trust store, "
            "the client's own certificate and that the certificate is for this host"
        )
    if "frame length" in said and protocol.endswith("PLAINTEXT"):
        return Unreachable(
            f"{where} answers, but not as Kafka does without TLS ({said}): if it wants TLS, say so with "
            "--command-config; else check the port"
        )
    if "disconnected" in said and protocol == "PLAINTEXT":
        return Unreachable(
            f"{where} hangs up ({said}): if it wants TLS or a login, say so with --command-config"
        )
    kind = _Silent if isinstance(error, _silences()) or "timed out" in said else Unreachable
    return kind(f"{where} does not answer ({said}): is the address right, and is it up?")
