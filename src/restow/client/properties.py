"""How to reach a cluster, from Kafka's own client properties.

    settings("localhost:9092", read_properties("client.properties"))

Layers come from the weakest to the strongest: file, environment, command line. What is not known, not to be
had, or contradicts itself is an error that says where it stands; secrets are in none of them.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from restow.client.jaas import Login, parse_login
from restow.client.opening import Settings
from restow.client.property_names import KNOWN, NUMBERS, REFUSED
from restow.client.secrets import Secret
from restow.client.tls import Store, tls_context
from restow.errors import InvalidInput

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping

    from restow.client.property_files import Property

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_NUMBER = re.compile(r"-?[0-9]{1,10}", re.ASCII)
_NEED_TLS = re.compile(r"ssl\.(truststore|keystore|key)\.")
_NEED_SASL = frozenset({"sasl.mechanism", "sasl.jaas.config", "sasl.username", "sasl.password"})


class _Given:
    """All properties that were given, the strongest of each name."""

    def __init__(self, layers: tuple[Mapping[str, Property], ...]) -> None:
        self._all = {name: found for layer in layers for name, found in layer.items()}

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


def settings(bootstrap: str, *layers: Mapping[str, Property]) -> Settings:
    """What connects to these brokers."""
    given = _Given(layers)
    _known(given)
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
    if protocol.startswith("SASL"):
        mechanism, login = _login(given)
        options |= {
            "sasl_mechanism": mechanism,
            "sasl_plain_username": login.username,
            "sasl_plain_password": login.password,
        }
    timeouts = {}
    if "request.timeout.ms" in given:
        timeouts["timeout_s"] = given.number("request.timeout.ms", 1) / 1000
    if "socket.connection.setup.timeout.ms" in given:
        timeouts["connect_timeout_s"] = given.number("socket.connection.setup.timeout.ms", 1) / 1000
    return Settings(bootstrap=bootstrap, options=options, **timeouts)


def _known(given: _Given) -> None:
    for name in given:
        if name in REFUSED:
            raise InvalidInput(f"{given.where(name)} is not supported: {REFUSED[name]}")
        if name not in KNOWN and not name.startswith(("sasl.oauthbearer.", "metrics.")):
            near = get_close_matches(name, KNOWN, n=1)
            meant = f": did you mean {near[0]}?" if near else ""
            raise InvalidInput(f"{given.where(name)} is no property of Kafka's clients{meant}")


def _agree(given: _Given, protocol: str) -> None:
    """Credentials that would silently not be used, or be sent in the clear, are a mistake."""
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


def _tls(given: _Given) -> ssl.SSLContext:
    algorithm = given.text("ssl.endpoint.identification.algorithm", "https")
    if algorithm.lower() not in {"", "https"}:
        raise InvalidInput(
            f"{given.where('ssl.endpoint.identification.algorithm')}: {algorithm!r} is not known; "
            "it is https, or empty for no check of the host name"
        )
    versions = tuple(each.strip() for each in given.text("ssl.enabled.protocols").split(",") if each.strip())
    if not versions and given.text("ssl.protocol", "TLS") not in {"TLS", "TLSv1.3"}:
        versions = (given.text("ssl.protocol"),)
    trust = Store(
        kind="truststore",
        type=given.text("ssl.truststore.type", "JKS").upper(),
        location=given.text("ssl.truststore.location") or None,
        password=given.secret("ssl.truststore.password"),
        certificates=given.text("ssl.truststore.certificates") or None,
    )
    own = Store(
        kind="keystore",
        type=given.text("ssl.keystore.type", "JKS").upper(),
        location=given.text("ssl.keystore.location") or None,
        password=given.secret("ssl.keystore.password"),
        certificates=given.text("ssl.keystore.certificate.chain") or None,
        key=given.secret("ssl.keystore.key"),
    )
    return tls_context(
        trust,
        own,
        key_password=given.secret("ssl.key.password"),
        check_host=bool(algorithm),
        versions=versions,
    )


def _login(given: _Given) -> tuple[str, Login]:
    mechanism = given.text("sasl.mechanism")
    if mechanism not in _MECHANISMS:
        where = given.where("sasl.mechanism") if mechanism else "sasl.mechanism"
        what = repr(mechanism) if mechanism else "Kafka's default, GSSAPI,"
        raise InvalidInput(f"{where}: {what} is not supported; set it to one of {', '.join(_MECHANISMS)}")
    family = mechanism.partition("-")[0]
    user, password = given.text("sasl.username"), given.secret("sasl.password")
    if "sasl.jaas.config" in given:
        if user or password:
            raise InvalidInput("sasl.username and sasl.password, and sasl.jaas.config, exclude each other")
        where = given.where("sasl.jaas.config")
        jaas = given.secret("sasl.jaas.config")
        login = parse_login(jaas.reveal() if jaas else "", where)
        if login.family != family:
            raise InvalidInput(
                f"{where} logs in by {login.family}, but sasl.mechanism is {mechanism}: they must agree"
            )
        return mechanism, login
    if not user or password is None:
        raise InvalidInput(
            f"sasl.mechanism is {mechanism}, but nobody is named who logs in: set sasl.jaas.config, or "
            "sasl.username and sasl.password"
        )
    return mechanism, Login(family=family, username=user, password=password)
