"""The certificates of a listener, from Kafka's configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.security.principal_rules import PrincipalRules
from restow.cluster.security.settings import config_of
from restow.errors import InvalidInput
from restow.runtime.secrets import Secret
from restow.runtime.tls import ClientAuth, TlsFiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.security.listeners import ListenerSpec


_TYPES = ("PEM", "PKCS12", "JKS")
"""Only checked: the first bytes of a store say what it is."""


def tls_files(properties: Mapping[str, str], listener: ListenerSpec) -> TlsFiles:
    """Return the listener's certificate, and whom it trusts. Raises InvalidInput."""

    def stated(name: str) -> str | None:
        return config_of(properties, listener.name, name)

    def secret(name: str) -> Secret | None:
        return None if (found := stated(name)) is None else Secret(found)

    for store in ("ssl.keystore.type", "ssl.truststore.type"):
        if (kind := stated(store)) not in (None, *_TYPES):
            raise InvalidInput(f"{store} of listener {listener.name} must be {', '.join(_TYPES)}, not {kind}")
    keystore = stated("ssl.keystore.location")
    if keystore is None:
        raise InvalidInput(
            f"listener {listener.name} has no certificate: ssl.keystore.location must name a PEM file or a "
            "store with a certificate and its private key"
        )
    algorithm = stated("ssl.endpoint.identification.algorithm")
    if algorithm not in (None, "", "https"):
        raise InvalidInput(
            f"ssl.endpoint.identification.algorithm must be https or nothing, not {algorithm!r}"
        )
    return TlsFiles(
        keystore=keystore,
        keystore_password=secret("ssl.keystore.password"),
        key_password=secret("ssl.key.password"),
        truststore=stated("ssl.truststore.location"),
        truststore_password=secret("ssl.truststore.password"),
        client_auth=_client_auth(properties, listener),
        checks_host=algorithm != "",
    )


def principal_rules(properties: Mapping[str, str], listener: ListenerSpec) -> PrincipalRules:
    """Return how the listener names clients by their certificates. Raises InvalidInput."""
    stated = config_of(properties, listener.name, "ssl.principal.mapping.rules")
    return PrincipalRules() if stated is None else PrincipalRules.parse(stated)


def _client_auth(properties: Mapping[str, str], listener: ListenerSpec) -> ClientAuth:
    """Return whether clients show a certificate. Where they log in, only the listener's own config counts."""
    own = properties.get(f"listener.name.{listener.name.lower()}.ssl.client.auth")
    text = own or (None if listener.protocol.has_login else properties.get("ssl.client.auth"))
    try:
        return ClientAuth((text or ClientAuth.NONE).strip().lower())
    except ValueError:
        raise InvalidInput(f"ssl.client.auth must be one of {', '.join(ClientAuth)}, not {text!r}") from None
