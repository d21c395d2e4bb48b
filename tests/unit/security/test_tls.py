"""Listeners with TLS: who a client is by its certificate, and configs that cannot be."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from harness.certificates import PASSWORD, Certificates, as_jks, certificates
from restow.cluster.handlers import Handler
from restow.cluster.net.server import Door, serve
from restow.cluster.security.broker_doors import Doors
from restow.cluster.security.certificates import UnreadableCertificate, principal_of, subject_of
from restow.cluster.security.principal_rules import PrincipalRules
from restow.errors import InvalidInput
from restow.runtime.clock import SystemClock
from restow.runtime.network import SystemNetwork
from restow.runtime.secrets import Secret
from restow.runtime.tls import ClientAuth, TlsFiles, client_context, server_context
from restow.wire.messages import ApiVersionsRequest, ApiVersionsResponse
from tests.conftest import needs_kafka
from tests.unit.broker.conversations import HOST, Client, bare_services, run

if TYPE_CHECKING:
    from pathlib import Path

API_VERSIONS = 18
DEFAULT = PrincipalRules()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    with needs_kafka():
        return certificates(tmp_path_factory.mktemp("certificates"))


async def principal_behind(server: TlsFiles, client: TlsFiles, rules: PrincipalRules | None = DEFAULT) -> str:
    """Return whom the listener takes the client for."""
    met: list[str] = []

    async def handle(_: Any, context: Any) -> Any:
        met.append(str(context.principal))
        return ApiVersionsResponse(api_keys=[])

    services = bare_services(SystemClock())
    door = Door(tls=server, rules=rules)
    handlers = {API_VERSIONS: Handler(range(1), handle)}
    listener = await serve(SystemNetwork(), HOST, 0, services, handlers=handlers, door=door)
    try:
        asking = Client()
        await SystemNetwork().connect(HOST, listener.port, asking, 60, tls=client)
        asking.ask(API_VERSIONS, 0, 1, ApiVersionsRequest())
        await asking.answer(API_VERSIONS, 0)
    finally:
        await listener.close()
    return met[0]


@pytest.mark.parametrize("client_auth", ClientAuth)
def test_principal_is_the_subject_of_a_requested_certificate(
    made: Certificates, client_auth: ClientAuth
) -> None:
    async def scenario() -> None:
        trusted = str(made.authority)
        server = TlsFiles(keystore=str(made.server), truststore=trusted, client_auth=client_auth)
        client = TlsFiles(
            keystore=str(made.client_encrypted), key_password=Secret(PASSWORD), truststore=trusted
        )
        expected = "User:ANONYMOUS" if client_auth is ClientAuth.NONE else "User:CN=client"
        assert await principal_behind(server, client) == expected
        assert await principal_behind(server, client, None) == "User:ANONYMOUS"

    run(scenario())


def test_listeners_rules_name_the_client(made: Certificates) -> None:
    trusted = str(made.authority)
    server = TlsFiles(keystore=str(made.server), truststore=trusted, client_auth=ClientAuth.REQUIRED)
    client = TlsFiles(keystore=str(made.client), truststore=trusted)

    def doors(rules: str) -> Doors:
        stated = {
            "listeners": f"SSL://{HOST}:0",
            "security.inter.broker.protocol": "SSL",
            "ssl.keystore.location": str(made.server),
            "ssl.principal.mapping.rules": rules,
        }
        return Doors.of(stated, HOST, 0)

    async def scenario() -> None:
        known = doors("RULE:^CN=(.*)$/$1@example/U").principal_rules["SSL"]
        assert await principal_behind(server, client, known) == "User:CLIENT@EXAMPLE"
        unknown = doors("RULE:^OU=(.*)$/$1/").principal_rules["SSL"]
        with pytest.raises(ConnectionError):
            await asyncio.wait_for(principal_behind(server, client, unknown), 60)

    run(scenario())


def test_broker_refuses_a_peer_whose_certificate_is_for_another_host(made: Certificates) -> None:
    async def scenario() -> None:
        server = TlsFiles(keystore=str(made.client))  # for the host "restow"
        client = TlsFiles(keystore=str(made.client), truststore=str(made.authority))
        with pytest.raises(OSError, match="certificate verify failed"):
            await principal_behind(server, client)
        unchecked = TlsFiles(keystore=str(made.client), truststore=str(made.authority), checks_host=False)
        assert await principal_behind(server, unchecked) == "User:ANONYMOUS"

    run(scenario())


def test_subject_is_written_as_by_java() -> None:
    """The expected names are `X500Principal.getName()` of Java; tests/oracle compares more of them."""

    def element(tag: int, *content: bytes) -> bytes:
        data = b"".join(content)
        return bytes((tag, len(data))) + data

    def attribute(oid: str, value: bytes) -> bytes:
        return element(0x30, element(0x06, bytes.fromhex(oid)), value)

    subject = element(
        0x30,
        element(0x31, attribute("550406", element(0x13, b"DE"))),
        element(0x31, attribute("55040a", element(0x0C, b'Ex, "ample" \\ #'))),
        element(0x31, attribute("2a864886f70d010901", element(0x16, b"a@b"))),
        element(
            0x31,
            attribute("55040b", element(0x0C, "ü".encode())),
            attribute("550403", element(0x0C, b" x ")),
        ),
    )
    nothing = element(0x30)
    inner = element(0x30, element(0x02, b"\1"), nothing, nothing, nothing, subject)
    found = subject_of(element(0x30, inner, nothing))
    assert found == 'OU=ü+CN=\\ x\\ ,1.2.840.113549.1.9.1=#1603614062,O=Ex\\, \\"ample\\" \\\\ #,C=DE'


@pytest.mark.parametrize(
    "data", [b"", b"\x30", b"\x30\x02\x30\x00", b"\x30\x84", b"\xff" * 40, b"\x30\x05\x30"]
)
def test_unreadable_certificate_is_refused(data: bytes) -> None:
    with pytest.raises(UnreadableCertificate):
        subject_of(data)


def test_client_without_certificate_is_anonymous() -> None:
    assert str(principal_of(None, PrincipalRules())) == "User:ANONYMOUS"


def test_files_that_are_no_certificates_are_refused(made: Certificates, tmp_path: Path) -> None:
    (tmp_path / "text.pem").write_text("nothing")
    for keystore, password in (
        (tmp_path / "missing.pem", None),
        (tmp_path / "text.pem", None),
        (made.authority, None),  # without a key
        (made.server_store, None),  # without its password
        (made.server_encrypted, None),
        (made.server_encrypted, Secret("wrong")),
    ):
        with pytest.raises(InvalidInput, match=r"ssl\.keystore\.location"):
            server_context(TlsFiles(keystore=str(keystore), key_password=password))
    for truststore in (tmp_path / "text.pem", made.trust_store):
        with pytest.raises(InvalidInput, match=r"ssl\.truststore\.location"):
            client_context(TlsFiles(keystore=str(made.server), truststore=str(truststore)))


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_stores_of_java_are_read(made: Certificates, kind: str) -> None:
    """As a listener's configs name them, on both sides of a connection."""
    own, theirs, trusted = made.server_store, made.client_store, made.trust_store
    if kind == "JKS":
        own, theirs, trusted = as_jks(own), as_jks(theirs), as_jks(trusted)

    def files(store: Path) -> TlsFiles:
        stated = {
            "listeners": f"SSL://{HOST}:0",
            "security.inter.broker.protocol": "SSL",
            "ssl.client.auth": "required",
            "ssl.keystore.type": kind,
            "ssl.keystore.location": str(store),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.type": kind,
            "ssl.truststore.location": str(trusted),
            "ssl.truststore.password": PASSWORD,
        }
        return Doors.of(stated, HOST, 0).tls["SSL"]

    async def scenario() -> None:
        assert await principal_behind(files(own), files(theirs)) == "User:CN=client"

    run(scenario())


BASIS = {"listeners": "PLAINTEXT://h:1,SSL://h:2", "ssl.keystore.location": "own.pem"}


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"listeners": "PLAINTEXT://h:1,SSL://h:2"}, "has no certificate"),
        ({**BASIS, "ssl.keystore.type": "JCEKS"}, "must be PEM, PKCS12, JKS, not JCEKS"),
        ({**BASIS, "ssl.truststore.type": "BKS"}, "must be PEM"),
        ({**BASIS, "ssl.client.auth": "maybe"}, "none, requested, required"),
        ({**BASIS, "ssl.endpoint.identification.algorithm": "ftp"}, "must be https"),
        ({**BASIS, "ssl.principal.mapping.rules": "RULE:^CN=(.*)$/$1"}, "this is none: 'RULE:"),
        ({**BASIS, "ssl.principal.mapping.rules": "RULE:^CN=(.*$/$1/"}, "a pattern that is none"),
    ],
)
def test_contradictory_configs_are_refused(properties: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        Doors.of(properties, HOST, 1)


def test_certificates_are_asked_for_by_listener() -> None:
    doors = Doors.of(
        {
            "listeners": "PLAINTEXT://h:1,ONE://h:2,TWO://h:3",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,ONE:SSL,TWO:SSL",
            "ssl.keystore.location": "own.pem",
            "ssl.key.password": "secret",
            "ssl.client.auth": "requested",
            "listener.name.two.ssl.client.auth": "required",
            "listener.name.two.ssl.keystore.location": "two.pem",
            "ssl.endpoint.identification.algorithm": "",
        },
        HOST,
        1,
    )
    one, two = doors.tls["ONE"], doors.tls["TWO"]
    assert (one.keystore, one.client_auth, one.checks_host) == ("own.pem", ClientAuth.REQUESTED, False)
    assert (two.keystore, two.client_auth) == ("two.pem", ClientAuth.REQUIRED)
    assert [doors.knows_clients(each) for each in doors.listeners] == [False, False, True]
    assert "secret" not in repr(doors)
