"""TLS from files of certificates, for listeners and for connections."""

from __future__ import annotations

import ssl
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.runtime.keystores import read_store, show

if TYPE_CHECKING:
    from restow.runtime.secrets import Secret


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


@frozen
class TlsFiles:
    """One side's certificate, and whom it trusts."""

    keystore: str
    """PEM file, or a store of Java, with the certificate chain and the private key."""
    keystore_password: Secret | None = None
    key_password: Secret | None = None
    truststore: str | None = None
    """The same with the certificates of authorities; without it the system's certificate store is used."""
    truststore_password: Secret | None = None
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
        show(
            context,
            read_store(files.keystore, files.keystore_password, files.key_password),
            files.key_password,
        )
    except (OSError, ValueError, InvalidInput) as error:
        raise InvalidInput(
            f"ssl.keystore.location: {files.keystore} must be a PEM file, a PKCS12 or a JKS store with a "
            "certificate and its private key, and ssl.keystore.password and ssl.key.password their passwords "
            f"if they have one: {error}"
        ) from error
    if files.truststore is not None:
        try:
            trusted = read_store(files.truststore, files.truststore_password)
            context.load_verify_locations(cadata=trusted.certificates)
        except (OSError, ValueError, InvalidInput) as error:
            raise InvalidInput(
                f"ssl.truststore.location: {files.truststore} must be a PEM file, a PKCS12 or a JKS store "
                f"with certificates, and ssl.truststore.password its password if it has one: {error}"
            ) from error
