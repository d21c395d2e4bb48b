"""TLS from PEM files, for listeners and for connections."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache

from restow.errors import InvalidInput


class ClientAuth(StrEnum):
    """Whether clients of a listener show a certificate."""

    NONE = "none"
    REQUESTED = "requested"
    REQUIRED = "required"


_VERIFY = {
    ClientAuth.NONE: ssl.CERT_NONE,
    ClientAuth.REQUESTED: ssl.CERT_OPTIONAL,
    ClientAuth.REQUIRED: ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """One side's certificate, and whom it trusts."""

    keystore: str
    """PEM file with the certificate chain and the private key."""
    key_password: str | None = field(default=None, repr=False)
    truststore: str | None = None
    """PEM file with the certificates of authorities; without it the system's certificate store is used."""
    client_auth: ClientAuth = ClientAuth.NONE
    checks_host: bool = True
    """Whether a server's certificate must be for the host that was asked."""


@lru_cache(maxsize=64)
def server_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a listener. Raises InvalidInput if a file is missing or has no certificate."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.verify_mode = _VERIFY[files.client_auth]
    _load(context, files)
    return context


@lru_cache(maxsize=64)
def client_context(files: TlsFiles) -> ssl.SSLContext:
    """Return the context of a connection to another broker. Raises InvalidInput, as `server_context`."""
    context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
    context.check_hostname = files.checks_host
    _load(context, files)
    return context


def _load(context: ssl.SSLContext, files: TlsFiles) -> None:
    try:
        # An empty password instead of none: otherwise an encrypted key would be asked for on the terminal.
        context.load_cert_chain(files.keystore, password=files.key_password or "")
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"ssl.keystore.location: {files.keystore} must be a PEM file with a certificate and its private "
            f"key, and ssl.key.password its password if it has one: {error}"
        ) from error
    if files.truststore is not None:
        try:
            context.load_verify_locations(files.truststore)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"ssl.truststore.location: {files.truststore} must be a PEM file with certificates: {error}"
            ) from error
