"""A folder with the certificates of a cluster, which are made for tests if it has none.

    authority.pem    whom all trust
    server.pem       the brokers' certificate and private key
    client.pem       one for clients, CN=client

The authority's own key is not kept, so nobody can make others that are trusted. The library cryptography
makes them; with certificates of one's own in the folder it is not needed.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

_VALID = dt.timedelta(days=365)
_CLOCKS_DIFFER = dt.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Certificates:
    """The PEM files in a folder."""

    folder: Path

    @property
    def authority(self) -> Path:
        return self.folder / "authority.pem"

    @property
    def server(self) -> Path:
        return self.folder / "server.pem"

    @property
    def client(self) -> Path:
        return self.folder / "client.pem"

    def make_if_none(self, host: str) -> None:
        """Make certificates for a server at that host and on loopback, unless there are some.

        Raises InvalidInput if there are some but not all that brokers need, or if they cannot be made.
        """
        missing = [each for each in (self.authority, self.server) if not each.exists()]
        if not missing:
            return
        if len(missing) == 1:
            raise InvalidInput(
                f"{missing[0]} is missing beside the other file: put it there, or name an empty folder"
            )
        if self.folder.exists() and any(self.folder.iterdir()):
            raise InvalidInput(
                f"{self.folder} has no {self.server.name} and {self.authority.name}, but other files: "
                "put them there, or name an empty folder"
            )
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f"{self.folder.name}.", dir=self.folder.parent))
        try:
            _make(Certificates(made), host)
            made.replace(self.folder)
        except OSError:
            if not self.server.exists():  # another process may have been faster
                raise
        finally:
            shutil.rmtree(made, ignore_errors=True)


def _make(files: Certificates, host: str) -> None:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise InvalidInput(
            "certificates are made by the library cryptography: pip install 'restow[sign]', or put "
            "authority.pem and server.pem into the folder"
        ) from None
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _signed(
        "restow test authority", key, None, key, [x509.BasicConstraints(ca=True, path_length=0)]
    )
    files.authority.write_bytes(_pem(authority))
    names: list[Any] = [x509.DNSName("localhost")]
    for each in dict.fromkeys((host, "127.0.0.1", "::1")):
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(each)))
        except ValueError:
            names.append(x509.DNSName(each))
    usage = [x509.BasicConstraints(ca=False, path_length=None)]
    for path, name, extensions in (
        (files.server, "server", [*usage, x509.SubjectAlternativeName(names)]),
        (files.client, "client", usage),
    ):
        own = ec.generate_private_key(ec.SECP256R1())
        path.touch(mode=0o600)
        path.write_bytes(_key_pem(own) + _pem(_signed(name, own, authority, key, extensions)))


def _signed(name: str, key: Any, issuer: Any, issuer_key: Any, extensions: Iterable[Any]) -> Any:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER)
        .not_valid_after(now + _VALID)
    )
    for each in extensions:
        builder = builder.add_extension(each, critical=isinstance(each, x509.BasicConstraints))
    return builder.sign(issuer_key, hashes.SHA256())


def _pem(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    found: bytes = certificate.public_bytes(Encoding.PEM)
    return found


def _key_pem(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    found: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return found
