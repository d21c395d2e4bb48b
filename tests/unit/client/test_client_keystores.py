"""Key and trust stores made by openssl and keytool, and a TLS handshake with their contents."""

from __future__ import annotations

import socket
import ssl
import threading
from typing import TYPE_CHECKING

import pytest

from harness.certificates import PASSWORD, Certificates, as_jks, certificates
from restow.client.properties import settings
from restow.client.property_files import from_flags
from restow.errors import InvalidInput
from restow.runtime import keystores
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.jvm


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    with needs_kafka():
        return certificates(tmp_path_factory.mktemp("certificates"))


def shake_hands(made: Certificates, flags: list[str], host: str = "localhost") -> str:
    """Return the client's name as the server sees it."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(made.folder / "server.crt", made.folder / "server.key")
    server.load_verify_locations(made.authority)
    server.verify_mode = ssl.CERT_REQUIRED
    client = settings("h:1", from_flags(["security.protocol=SSL", *flags])).options["ssl_context"]
    ours, theirs = socket.socketpair()
    names: list[str] = []

    def serve() -> None:
        try:
            with server.wrap_socket(theirs, server_side=True) as line:
                names.append(dict(pair[0] for pair in line.getpeercert()["subject"])["commonName"])
                line.sendall(b"!")
        except (ssl.SSLError, OSError):
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        with client.wrap_socket(ours, server_hostname=host) as line:
            line.recv(1)
    finally:
        ours.close()
        thread.join()
    return names[0]


def flags_of(trust: Path, own: Path, kind: str) -> list[str]:
    return [
        f"ssl.truststore.type={kind}",
        f"ssl.truststore.location={trust}",
        f"ssl.truststore.password={PASSWORD}",
        f"ssl.keystore.type={kind}",
        f"ssl.keystore.location={own}",
        f"ssl.keystore.password={PASSWORD}",
        f"ssl.key.password={PASSWORD}",
    ]


def test_pem_files_are_read(made: Certificates) -> None:
    flags = [
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={made.authority}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.location={made.client}",
    ]
    assert shake_hands(made, flags) == "client"


def test_pem_in_the_properties_is_read_even_in_one_line(made: Certificates) -> None:
    text = made.client_encrypted.read_text()
    key, begin, chain = text.partition("-----BEGIN CERTIFICATE")
    flags = [
        "ssl.truststore.type=PEM",
        f"ssl.truststore.certificates={made.authority.read_text()}",
        "ssl.keystore.type=PEM",
        f"ssl.keystore.key={' '.join(key.split(chr(10)))}",
        f"ssl.keystore.certificate.chain={begin}{chain}",
        f"ssl.key.password={PASSWORD}",
    ]
    assert shake_hands(made, flags) == "client"


def test_pkcs12_store_is_read(made: Certificates) -> None:
    assert shake_hands(made, flags_of(made.trust_store, made.client_store, "PKCS12")) == "client"


def test_jks_store_is_read(made: Certificates) -> None:
    flags = flags_of(as_jks(made.trust_store), as_jks(made.client_store), "JKS")
    assert shake_hands(made, flags) == "client"


def test_certificate_for_another_host_is_refused_unless_disabled(made: Certificates) -> None:
    flags = flags_of(made.trust_store, made.client_store, "PKCS12")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        shake_hands(made, flags, "elsewhere.example")
    unchecked = [*flags, "ssl.endpoint.identification.algorithm="]
    assert shake_hands(made, unchecked, "elsewhere.example") == "client"


def test_untrusted_server_is_refused(made: Certificates) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(made, [])


@pytest.mark.parametrize("kind", ["PKCS12", "JKS"])
def test_wrong_password_is_refused(made: Certificates, kind: str) -> None:
    trust, own = made.trust_store, made.client_store
    if kind == "JKS":
        trust, own = as_jks(trust), as_jks(own)
    for which in ("truststore", "keystore"):
        flags = [each.replace(PASSWORD, "wr0ng") for each in flags_of(trust, own, kind) if which in each]
        with pytest.raises(InvalidInput, match="with this password") as told:
            settings("h:1", from_flags(["security.protocol=SSL", *flags]))
        assert "wr0ng" not in str(told.value)


def test_wrong_or_missing_password_of_a_pem_key_is_refused(made: Certificates) -> None:
    flags = ["security.protocol=SSL", "ssl.keystore.type=PEM"]
    flags.append(f"ssl.keystore.location={made.client_encrypted}")
    with pytest.raises(InvalidInput, match=r"set ssl\.key\.password"):
        settings("h:1", from_flags(flags))
    with pytest.raises(InvalidInput, match="does not open the private key") as told:
        settings("h:1", from_flags([*flags, "ssl.key.password=wr0ng"]))
    assert "wr0ng" not in str(told.value)


def test_file_that_is_no_store_is_refused(tmp_path: Path, made: Certificates) -> None:
    for content, says in (
        (b"", "neither a PEM, a JKS nor a PKCS12"),
        (b"\xce\xce\xce\xce", "JCEKS"),
        (b"\x30\x82\x00\x01", "openssl can read"),
        (as_jks(made.client_store).read_bytes()[:200], "ends in the middle"),
        (b"-----BEGIN X-----", "no certificate and no private key"),
    ):
        file = tmp_path / "store"
        file.write_bytes(content)
        flags = [
            "security.protocol=SSL",
            f"ssl.keystore.location={file}",
            f"ssl.keystore.password={PASSWORD}",
        ]
        with pytest.raises(InvalidInput, match=says):
            settings("h:1", from_flags(flags))


def test_key_store_without_a_key_is_refused(made: Certificates) -> None:
    flags = ["security.protocol=SSL", f"ssl.keystore.location={made.authority}"]
    with pytest.raises(InvalidInput, match="no private key"):
        settings("h:1", from_flags(flags))


def test_missing_openssl_says_how_to_convert(made: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keystores.shutil, "which", lambda _name: None)
    with pytest.raises(InvalidInput, match=r"no `openssl` .*`openssl pkcs12 -in"):
        keystores.read_store(str(made.client_store), None)
