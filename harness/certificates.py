"""Certificates for loopback, and the stores of Kafka and its clients, newly made.

    made = certificates(tmp_path)
    made.authority, made.client        PEM files
    made.server_store, made.trust_store  PKCS12 stores for brokers

Made by `openssl`; JKS stores by Java's `keytool`. The private keys are for tests and valid for a day.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness.java import HarnessError, Missing, java
from harness.process import HOST

PASSWORD = "only-for-tests"  # noqa: S105
_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """Everything that a broker and a client need to trust each other."""

    folder: Path
    authority: Path
    """The certificate authority."""
    client: Path
    """The client's unencrypted key, and certificate."""
    client_encrypted: Path
    """The same with the key encrypted by `PASSWORD`."""
    server: Path
    """The server's unencrypted key, and certificate."""
    server_encrypted: Path
    """The same with the key encrypted by `PASSWORD`."""
    server_store: Path
    client_store: Path
    trust_store: Path
    """PKCS12 stores, all encrypted by `PASSWORD`."""


def certificates(folder: Path, *, host: str = HOST) -> Certificates:
    """Make certificates for a server at that address, and for a client called restow."""
    folder.mkdir(parents=True, exist_ok=True)
    authority, authority_key = folder / "authority.pem", folder / "authority.key"
    name = ("-subj", "/CN=authority of a test", "-days", "1", "-nodes")
    _openssl("req", "-x509", *_KEY, "-keyout", authority_key, "-out", authority, *name)
    for who, alternative in (("server", f"IP:{host},DNS:localhost"), ("client", "DNS:restow")):
        _issue(folder, who, alternative)
    pairs = {who: _in_one_file(folder, who) for who in ("server", "client")}
    stores = {}
    for who in ("server", "client"):
        stores[who] = folder / f"{who}.p12"
        given = ("-inkey", folder / f"{who}.key", "-in", folder / f"{who}.crt", "-certfile", authority)
        _openssl("pkcs12", "-export", *given, "-out", stores[who], "-passout", f"pass:{PASSWORD}")
    trust = folder / "trust.p12"
    keytool("-importcert", "-noprompt", "-alias", "authority", "-file", authority, "-keystore", trust)
    return Certificates(
        folder=folder,
        authority=authority,
        client=pairs["client"][0],
        client_encrypted=pairs["client"][1],
        server=pairs["server"][0],
        server_encrypted=pairs["server"][1],
        server_store=stores["server"],
        client_store=stores["client"],
        trust_store=trust,
    )


def _in_one_file(folder: Path, who: str) -> tuple[Path, Path]:
    """Write key and certificate into one file, and again with the key encrypted."""
    plain, encrypted = folder / f"{who}.pem", folder / f"{who}-encrypted.pem"
    key, certificate = folder / f"{who}.key", folder / f"{who}.crt"
    plain.write_text(key.read_text() + certificate.read_text())
    _openssl("pkcs8", "-topk8", "-in", key, "-out", encrypted, "-passout", f"pass:{PASSWORD}")
    encrypted.write_text(encrypted.read_text() + certificate.read_text())
    return plain, encrypted


def as_der(certificate_or_key: Path, kind: str) -> Path:
    """Convert an unencrypted certificate (`x509`) or private key (`pkey`) in a PEM file to DER."""
    target = certificate_or_key.with_suffix(f".{kind}.der")
    _openssl(kind, "-in", certificate_or_key, "-outform", "der", "-out", target)
    return target


def as_jks(store: Path) -> Path:
    """Convert a store to Java's old format."""
    target = store.with_suffix(".jks")
    given = ("-srckeystore", store, "-srcstorepass", PASSWORD, "-srcstoretype", "PKCS12")
    keytool("-importkeystore", "-noprompt", *given, "-destkeystore", target, store_type="JKS")
    return target


def keytool(*arguments: str | Path, store_type: str = "PKCS12") -> None:
    """Run Java's keytool with the test password."""
    program = Path(java()).with_name("keytool")
    command = [str(program), *map(str, arguments)]
    if arguments[0] == "-importkeystore":
        command += ["-deststorepass", PASSWORD, "-deststoretype", store_type]
    else:
        command += ["-storepass", PASSWORD, "-storetype", store_type]
    _run(command)


def _issue(folder: Path, who: str, alternative: str) -> None:
    request = folder / f"{who}.csr"
    name = ("-subj", f"/CN={who}", "-nodes")
    _openssl("req", "-new", *_KEY, "-keyout", folder / f"{who}.key", "-out", request, *name)
    extension = folder / f"{who}.ext"
    extension.write_text(f"subjectAltName={alternative}\n")
    by = (
        "-CA",
        folder / "authority.pem",
        "-CAkey",
        folder / "authority.key",
        "-CAcreateserial",
        "-days",
        "1",
    )
    out = ("-out", folder / f"{who}.crt", "-extfile", extension)
    _openssl("x509", "-req", "-in", request, *by, *out)


def _openssl(*arguments: str | Path) -> None:
    program = shutil.which("openssl")
    if program is None:
        raise Missing("there is no openssl on the PATH to make certificates with: install it")
    _run([program, *map(str, arguments)])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise HarnessError(f"{Path(command[0]).name} {command[1]} failed:\n{done.stdout}{done.stderr}")
