"""How to reach a cluster, from Kafka's own client properties.

    settings("localhost:9092", read_properties("client.properties"))

Layers come from the weakest to the strongest: file, environment, command line. Unknown, unsupported and
contradictory properties are errors that say where they are, without secrets.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from restow.client.bootstrap import ConnectionSettings
from restow.client.logins import login
from restow.client.property_files import from_environment, has_secrets, read_properties
from restow.client.property_names import KNOWN, NUMBERS, REFUSED
from restow.client.secret_files import FROM_FILES, PROVIDERS, resolve, warn_if_open_to_all
from restow.client.tls import TlsStore, tls_context
from restow.errors import InvalidInput
from restow.runtime.secrets import Secret

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping
    from os import PathLike

    from restow.client.property_files import Property

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_NUMBER = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_NEED_TLS = re.compile(r"ssl\.(truststore|keystore|key)\.")
_NEED_SASL = frozenset(
    {
        "sasl.jaas.config",
        "sasl.mechanism",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.password",
        "sasl.username",
    }
)
_NAMES = frozenset(KNOWN | {f"{name}.file" for name in FROM_FILES} | {PROVIDERS})


class Given:
    """All properties given, the strongest of each name."""

    def __init__(self, found: Mapping[str, Property]) -> None:
        self._all = found

    def __iter__(self) -> Any:
        return iter(self._all)

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def where(self, name: str) -> str:
        return f"{self._all[name].where}: {name}"

    def text(self, name: str, otherwise: str = "") -> str:
        return self._all[name].value.strip() if name in self._all else otherwise

    def secret(self, name: str) -> Secret | None:
        return Secret("".join(self._all[name].value)) if name in self._all else None

    def number(self, name: str, least: int) -> int:
        value = self.text(name)
        if not _NUMBER.fullmatch(value) or int(value) < least:
            raise InvalidInput(f"{self.where(name)} is not a number of at least {least}")
        return int(value)


def layers(
    command_config: str | PathLike[str] | None,
    command_property: Mapping[str, Property],
    environment: Mapping[str, str],
    warn: Callable[[str], None],
) -> tuple[Mapping[str, Property], ...]:
    """Return the properties of a file, the environment and the command line; later ones win."""
    file: dict[str, Property] = {}
    if command_config:
        file = read_properties(str(command_config))
        if has_secrets(file):
            warn_if_open_to_all(str(command_config), warn)
    return file, from_environment(environment), command_property


def settings(
    bootstrap: str,
    *layers: Mapping[str, Property],
    environment: Mapping[str, str] | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> ConnectionSettings:
    """Return the settings for these brokers; `warn` gets files whose secrets other users can read."""
    for layer in layers:
        _known(layer)
    given = Given(resolve(layers, environment or {}, warn))
    protocol = given.text("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise InvalidInput(
            f"{given.where('security.protocol')}: {protocol!r} is not one of {', '.join(_PROTOCOLS)}"
        )
    _agree(given, protocol)
    options: dict[str, Any] = {"security_protocol": protocol}
    for name, ours in NUMBERS.items():
        if name in given:
            value = given.number(name, -1)
            options[ours] = None if value < 0 else value
    if given.text("client.id"):
        options["client_id"] = given.text("client.id")
    if protocol.endswith("SSL"):
        options["ssl_context"] = _tls(given)
    credentials = None
    if protocol.startswith("SASL"):
        how, credentials = login(given, protocol)
        options |= how
    timeouts = {}
    if "request.timeout.ms" in given:
        timeouts["timeout_s"] = given.number("request.timeout.ms", 1) / 1000
    if "socket.connection.setup.timeout.ms" in given:
        timeouts["connect_timeout_s"] = given.number("socket.connection.setup.timeout.ms", 1) / 1000
    return ConnectionSettings(bootstrap=bootstrap, options=options, credentials=credentials, **timeouts)


def _known(layer: Mapping[str, Property]) -> None:
    """Refuse names that Kafka does not know, without showing them: one may be the end of a password."""
    for name, found in layer.items():
        if name in REFUSED:
            raise InvalidInput(f"{found.where}: {name} is not supported: {REFUSED[name]}")
        if name.startswith("sasl.oauthbearer.assertion."):
            raise InvalidInput(f"{found.where}: {name} is not supported: only client credentials are")
        if name in _NAMES or name.startswith(("metrics.", f"{PROVIDERS}.")):
            continue
        near = get_close_matches(name, _NAMES, n=1) if "." in name else []  # almost all of them have dots
        meant = (
            f"did you mean {near[0]}?"
            if near
            else "if this goes on with a value before it, that line must end in a backslash"
        )
        raise InvalidInput(f"{found.where}: there is a name that is no property of Kafka's clients: {meant}")


def _agree(given: Given, protocol: str) -> None:
    """Refuse credentials that would silently be ignored, or sent unencrypted."""
    said = "security.protocol" in given
    for name in given:
        tls, sasl = _NEED_TLS.match(name), name in _NEED_SASL
        if not given.text(name) or not (tls or sasl):
            continue
        if (tls and not protocol.endswith("SSL")) or (sasl and not protocol.startswith("SASL")):
            fits = "SSL or SASL_SSL" if tls else "SASL_SSL or SASL_PLAINTEXT"
            raise InvalidInput(
                f"{given.where(name)} is set, but security.protocol is {protocol}"
                f"{'' if said else ' (the default)'}: set it to {fits}, or leave {name} out"
            )


def _tls(given: Given) -> ssl.SSLContext:
    algorithm = given.text("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() not in {"", "https"}:
        raise InvalidInput(
            f"{given.where('ssl.endpoint.identification.algorithm')}: {algorithm!r} is not known; "
            "it is https, or empty for no check of the host name"
        )
    versions = tuple(each.strip() for each in given.text("ssl.enabled.protocols").split(",") if each.strip())
    if not versions and given.text("ssl.protocol", "TLS") not in {"TLS", "TLSv1.3"}:
        versions = (given.text("ssl.protocol"),)
    return tls_context(
        _tls_store(given, "truststore", "certificates"),
        _tls_store(given, "keystore", "certificate.chain"),
        key_password=given.secret("ssl.key.password"),
        check_host=bool(algorithm),
        versions=versions,
    )


def _tls_store(given: Given, kind: str, certificates: str) -> TlsStore:
    return TlsStore(
        kind=kind,
        type=given.text(f"ssl.{kind}.type", "JKS").upper(),
        location=given.text(f"ssl.{kind}.location") or None,
        password=given.secret(f"ssl.{kind}.password"),
        certificates=given.text(f"ssl.{kind}.{certificates}") or None,
        key=given.secret(f"ssl.{kind}.key"),
    )
