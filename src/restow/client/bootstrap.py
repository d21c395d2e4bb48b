"""Open a connection: each bootstrap server is tried separately, and each failure is told in a sentence.

    a refused port, a host without a route, an untrusted certificate    reported at once
    a name that does not resolve                                        tried twice
    a server that hangs up or does not speak Kafka                      tried for a second
    a server that accepts and does not answer                           waited for, twice

The next server is tried when the one before has failed or takes longer than a second, and the first to
connect is used. A refused login ends all attempts: retries are how accounts get locked.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Any

from restow._frozen import frozen
from restow.client.errors import ClientError, LoginRefused, Unreachable
from restow.client.hedging import first_answer
from restow.client.secrets import keep_credentials_out_of_logs
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ADDRESS = re.compile(r"(\[[^\[\]\s]+\]|[^\[\]:\s]+)(:(?P<port>[0-9]{1,5}))?")
_PORTS = range(1, 65_536)
_LONG_S = 1.0
_FINAL = re.compile(r"ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|CERTIFICATE_VERIFY_FAILED")
_TRIES = 5
"""The library pauses in between, for 50 ms at first and twice as long each time."""
_BACKOFF_MS = 1_000
"""The longest pause between two attempts at one broker, as in Kafka's own clients; the library has 30 s."""
_NO_SUCH_NAME = "DNS"
_TRIES_OF_NAMES = 2
_TIMES_SILENT = 2
"""A machine may stall for longer than a connection takes."""


@frozen
class ConnectionSettings:
    """How to reach a cluster. `options` are kafka-python's by name; they may hold secrets."""

    bootstrap: str
    options: Mapping[str, Any] = field(default_factory=dict, repr=False)
    credentials: Callable[[], object] | None = field(default=None, repr=False)
    """Gets the credentials before a broker is asked. Raises LoginRefused or Unreachable."""
    timeout_s: float = 30.0
    connect_timeout_s: float = 5.0


class Silent(Unreachable):
    """The server did not answer until the timeout."""


async def connect(settings: ConnectionSettings) -> Any:
    """Return a connected client of kafka-python, or raise Unreachable with the reason."""
    servers = _servers(settings.bootstrap)
    if settings.credentials is not None:
        await asyncio.to_thread(settings.credentials)  # its failure does not concern the brokers
    failures: dict[str, Unreachable] = {}
    clients: list[Any] = []
    attempts = [partial(_try_server, each, settings, failures, clients) for each in servers]
    found = None
    try:
        _, found = await first_answer(attempts, _LONG_S)
    except Unreachable as error:
        if len(failures) == 1:
            raise
        raise type(error)("; ".join(str(failures[each]) for each in servers if each in failures)) from error
    finally:
        for each in clients:  # two may have connected at the same moment
            if each is not found:
                each.close()
    if isinstance(found, LoginRefused):
        raise found
    return found


async def _try_server(
    server: str, settings: ConnectionSettings, failures: dict[str, Unreachable], clients: list[Any]
) -> Any:
    """Return a client; or return the error, instead of raising it, if no other server should be tried."""
    for left in reversed(range(_TIMES_SILENT)):
        attempt = Attempt(server, settings)
        try:
            clients.append(await attempt.client())
            return clients[-1]
        except LoginRefused as error:
            return error
        except Silent as error:
            failures[server] = error
            if not left:
                raise
        except Unreachable as error:
            failures[server] = error
            raise
    raise AssertionError("the last try returns or raises")


class Attempt:
    """One attempt at one server, in a thread, because the library blocks until it is connected."""

    def __init__(self, server: str, settings: ConnectionSettings) -> None:
        self._server = server
        self._settings = settings
        self._network: Any = None
        self._client: Any = None
        self._given_up = False

    async def client(self) -> Any:
        """Connect. On cancellation, the thread ends at once and leaves no connection behind."""
        try:
            return await asyncio.to_thread(self._connect)
        except asyncio.CancelledError:
            self._given_up = True
            if self._client is not None:
                self._client.close()
            elif self._network is not None:
                manager = self._network._manager  # noqa: SLF001
                with suppress(RuntimeError):  # it has just ended
                    # The library's own thread must close it: closed by another, it may sleep forever.
                    manager._net.call_soon_threadsafe(manager.close)  # noqa: SLF001
            raise

    def _connect(self) -> Any:
        from kafka.admin import KafkaAdminClient
        from kafka.errors import KafkaError

        class Client(KafkaAdminClient):  # type: ignore[misc]
            """Disconnects if it cannot connect; the library's own leaves its thread and sockets behind."""

            def __init__(self, **options: Any) -> None:
                try:
                    super().__init__(**options)
                except BaseException:
                    if hasattr(self, "_net"):
                        self._closed = False
                        self.close()
                    raise

        failures: list[Unreachable] = []
        keep_credentials_out_of_logs()
        options = {"client_id": "restow", "reconnect_backoff_max_ms": _BACKOFF_MS, **self._settings.options}
        try:
            client = Client(
                bootstrap_servers=[self._server],
                request_timeout_ms=int(self._settings.timeout_s * 1000),
                bootstrap_timeout_ms=int(self._settings.connect_timeout_s * 1000),
                kafka_client=partial(self._watched, failures),
                **options,
            )
        except KafkaError as error:
            told = isinstance(error, _refusals()) or not failures
            raise (in_words(error, self._server, self._settings) if told else failures[-1]) from error
        except (OSError, ValueError, RuntimeError) as error:
            raise Unreachable(f"cannot connect to {self._server}: {error}") from error
        del client._manager.get_connection  # noqa: SLF001  (the watched one; the library's own is back)
        self._client = client
        if self._given_up:
            client.close()
            raise Unreachable(f"{self._server}: given up")
        return client

    def _watched(self, failures: list[Unreachable], **options: Any) -> Any:
        from kafka.net.compat import KafkaNetClient

        self._network = KafkaNetClient(**options)
        if self._given_up:
            self._network.close()
            raise Unreachable(f"{self._server}: given up")
        _watch(self._network._manager, self._server, self._settings, failures)  # noqa: SLF001
        return self._network


def _watch(manager: Any, server: str, settings: ConnectionSettings, failures: list[Unreachable]) -> None:
    """Keep why each connection failed, which the library only logs, and stop hopeless attempts.

    A broker that refuses a login hangs up at once, and the library often loses its answer; so a broker that
    hangs up on a login twice is taken to have refused it.
    """
    from kafka.errors import KafkaConnectionError, KafkaError, SaslAuthenticationFailedError

    get_connection = manager.get_connection
    errors: list[Exception] = []
    refused: list[Exception] = []
    hung_up: list[Exception] = []
    refusals: tuple[type[Exception], ...] = (*_refusals(), LoginRefused)

    def remember(error: Exception) -> None:
        errors.append(error)
        failures.append(in_words(error, server, settings))

    def watched(node_id: Any, *given: Any, **named: Any) -> Any:
        if refused:
            raise refused[0]
        if errors and len(errors) >= _tries(errors[-1]):
            raise errors[-1]
        known = node_id in manager._conns  # noqa: SLF001
        connection = get_connection(node_id, *given, **named)
        if known:
            return connection
        log_in = connection._sasl_authenticate  # noqa: SLF001

        async def logged_in(*more: Any, **others: Any) -> None:
            try:
                await log_in(*more, **others)
            except refusals as error:
                refused.append(error.with_traceback(None))
                raise
            except KafkaConnectionError as error:
                hung_up.append(error.with_traceback(None))
                if len(hung_up) > 1:
                    refused.append(SaslAuthenticationFailedError("it hung up on the login, twice"))
                raise
            except (KafkaError, ClientError):
                raise
            except Exception as error:  # noqa: BLE001  (the libraries have errors of their own)
                # AWS without credentials: no broker was asked yet.
                refused.append(SaslAuthenticationFailedError(f"it could not be tried: {error}"))
                raise refused[-1] from None

        connection._sasl_authenticate = logged_in  # noqa: SLF001
        connection.close_future.add_errback(remember)
        return connection

    manager.get_connection = watched


def _tries(error: Exception) -> int:
    """Return how often to try a connection that fails like this."""
    said = str(error)
    return 1 if _FINAL.search(said) else _TRIES_OF_NAMES if _NO_SUCH_NAME in said else _TRIES


def _refusals() -> tuple[type[Exception], ...]:
    from kafka.errors import SaslAuthenticationFailedError, UnsupportedSaslMechanismError

    return SaslAuthenticationFailedError, UnsupportedSaslMechanismError


def _silences() -> tuple[type[Exception], ...]:
    from kafka.errors import KafkaTimeoutError, RequestTimedOutError

    return KafkaTimeoutError, RequestTimedOutError


def _servers(bootstrap: str) -> list[str]:
    """Split the list and refuse invalid addresses at once, without waiting for an answer."""
    found = [each.strip() for each in bootstrap.split(",")]
    for each in found:
        address = _ADDRESS.fullmatch(each)
        if address is None or int(address["port"] or 1) not in _PORTS:
            raise InvalidInput(
                f"bootstrap servers: {each!r} is not HOST:PORT; write them like localhost:9092,localhost:9093"
            )
    return list(dict.fromkeys(found))


def in_words(error: Exception, where: str, settings: ConnectionSettings) -> Unreachable:
    """Describe an error of the library in one sentence, with what to check."""
    if isinstance(error, Unreachable):
        return error
    said = str(error) or type(error).__name__
    protocol = settings.options.get("security_protocol", "PLAINTEXT")
    if isinstance(error, _refusals()):
        check = "user, password and sasl.mechanism"
        if settings.options.get("sasl_mechanism") == "GSSAPI":
            check = "sasl.kerberos.service.name, and that the broker's keytab has its present key"
        return LoginRefused(f"{where} refuses the login ({said}): check {check}")
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
    kind = Silent if isinstance(error, _silences()) or "timed out" in said else Unreachable
    return kind(f"{where} does not answer ({said}): is the address right, and is it up?")
