"""Build the TLS context from Kafka's `ssl.…` properties: whom to trust, and our own certificate."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.runtime.keystores import Pem, pem_of, read_store, show

if TYPE_CHECKING:
    from collections.abc import Callable

    from restow.runtime.secrets import Secret

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_TYPES = {"PEM", "JKS", "PKCS12"}


@frozen
class TlsStore:
    """A key or trust store as properties give it: a file, or PEM in the properties themselves."""

    kind: str
    """"truststore" or "keystore", as in the property names."""
    type: str = "JKS"
    location: str | None = None
    password: Secret | None = None
    certificates: str | None = None
    key: Secret | None = None

    def read(self, key_password: Secret | None = None) -> Pem | None:
        """Return its certificates and key; None if there is no such store."""
        if self.type not in _TYPES:
            raise InvalidInput(
                f"ssl.{self.kind}.type: {self.type!r} is not known; it is one of PEM, PKCS12, JKS"
            )
        if self.certificates is None and self.key is None:
            return read_store(self.location, self.password, key_password) if self.location else None
        if self.location:
            raise InvalidInput(f"ssl.{self.kind}.location and PEM in the properties exclude each other")
        if self.type != "PEM":
            raise InvalidInput(f"PEM in the properties needs ssl.{self.kind}.type=PEM")
        whole = "".join(filter(None, (self.certificates, self.key and self.key.reveal())))
        return pem_of(whole, f"ssl.{self.kind}")


def tls_context(
    trust: TlsStore,
    own: TlsStore,
    *,
    key_password: Secret | None = None,
    check_host: bool = True,
    versions: tuple[str, ...] = (),
) -> ssl.SSLContext:
    """Return a client's context. Without a trust store, the system's certificate store is used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = check_host
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if versions:
        unknown = [each for each in versions if each not in _VERSIONS]
        if unknown:
            raise InvalidInput(f"ssl.enabled.protocols: {unknown[0]!r} is not TLSv1.2 or TLSv1.3")
        context.minimum_version = min(_VERSIONS[each] for each in versions)
        context.maximum_version = max(_VERSIONS[each] for each in versions)
    trusted = trust.read()
    if trusted is None:
        context.load_default_certs()
    else:
        _in_words(lambda: context.load_verify_locations(cadata=trusted.certificates), trust, "certificates")
    mine = own.read(key_password)
    if mine is not None:
        _show(context, own, mine, key_password)
    return context


def _show(context: ssl.SSLContext, own: TlsStore, mine: Pem, key_password: Secret | None) -> None:
    if mine.key is None or not mine.certificates:
        missing = "private key" if mine.key is None else "certificate"
        raise InvalidInput(f"{_place(own)} has no {missing}: a client needs both to show who it is")
    if "ENCRYPTED" in mine.key and key_password is None:
        raise InvalidInput(f"{_place(own)} has an encrypted private key: set ssl.key.password")
    _in_words(lambda: show(context, mine, key_password), own, "key and certificates")


def _in_words(load: Callable[[], object], store: TlsStore, what: str) -> None:
    try:
        load()
    except ssl.SSLError as error:
        reason = error.reason or "the password does not open the private key"
        raise InvalidInput(f"{_place(store)}: its {what} cannot be used: {reason}") from None


def _place(store: TlsStore) -> str:
    return repr(store.location) if store.location else f"ssl.{store.kind}"
