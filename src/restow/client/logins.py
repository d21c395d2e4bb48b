"""Logins, from Kafka's `sasl.…` properties to kafka-python's options.

PLAIN, SCRAM-SHA-256, SCRAM-SHA-512    a user and a password
OAUTHBEARER                            a token: from an endpoint, a file, or unsigned for development
GSSAPI                                 Kerberos, with the package gssapi; the ticket is kinit's or a keytab's
AWS_MSK_IAM                            Amazon's own, with the package botocore and its credentials
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from restow.client.jaas import Login, parse_login
from restow.client.kerberos import KerberosLogin
from restow.client.tokens import TokenEndpoint, TokenFile, Tokens, Unsecured, as_provider
from restow.errors import InvalidInput
from restow.model.jaas import JaasEntry, parse_entry
from restow.runtime.secrets import Secret

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from restow.client.properties import Given

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "AWS_MSK_IAM")
_DEFAULT = "GSSAPI"
_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_CLIENT_ID = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105
_SCOPE = "sasl.oauthbearer.scope"
_CLAIM, _EXTENSION = "unsecuredLoginStringClaim_", "extension_"
_UNSECURED = "unsecuredLogin"
_LIFETIME = "unsecuredLoginLifetimeSeconds"
_HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_HANDLERS = {
    "sasl.login.callback.handler.class": {
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerLoginCallbackHandler",
    },
    "sasl.client.callback.handler.class": {"software.amazon.msk.auth.iam.IAMClientCallbackHandler"},
    "sasl.oauthbearer.jwt.retriever.class": {
        f"org.apache.kafka.common.security.oauthbearer.{each}JwtRetriever"
        for each in ("Default", "ClientCredentials", "File")
    },
}
"""Java classes that are replaced by our own code."""


def login(given: Given, protocol: str) -> tuple[dict[str, Any], Callable[[], object] | None]:
    """Return kafka-python's options for the chosen mechanism, and what gets the credentials beforehand."""
    mechanism = given.text("sasl.mechanism") or _DEFAULT
    if mechanism not in MECHANISMS:
        raise InvalidInput(
            f"{given.where('sasl.mechanism')}: {mechanism!r} is not known; set it to one of "
            f"{', '.join(MECHANISMS)}"
        )
    for name, known in _HANDLERS.items():
        if given.text(name) and given.text(name) not in known:
            raise InvalidInput(
                f"{given.where(name)} is not supported: classes of Java's cannot be loaded here, and this is "
                "none of those whose work restow does itself"
            )
    entry = _entry(given, mechanism)
    options = {"sasl_mechanism": mechanism}
    if mechanism == "OAUTHBEARER":
        provider = as_provider(_tokens(given, entry))
        return {**options, "sasl_oauth_token_provider": provider}, provider.token
    if mechanism == "GSSAPI":
        service, kerberos = _kerberos(given, entry)
        return {**options, "sasl_kerberos_service_name": service}, kerberos.get
    if mechanism == "AWS_MSK_IAM":
        _check_amazon(given, entry, protocol)
        return options, None
    found = _password(given, mechanism)
    return {**options, "sasl_plain_username": found.username, "sasl_plain_password": found.password}, None


def _entry(given: Given, mechanism: str) -> JaasEntry | None:
    """Parse `sasl.jaas.config`, if there is one; it must be for the mechanism."""
    if "sasl.jaas.config" not in given:
        return None
    where = given.where("sasl.jaas.config")
    entry = parse_entry(_bare(given, "sasl.jaas.config"), where)
    if entry.family != (mechanism.partition("-")[0] if mechanism.startswith("SCRAM") else mechanism):
        default = "" if given.text("sasl.mechanism") else " (Kafka's default)"
        raise InvalidInput(
            f"{where} logs in by {entry.family}, but sasl.mechanism is {mechanism}{default}: they must agree"
        )
    return entry


def _bare(given: Given, name: str) -> str:
    found = given.secret(name)
    return found.reveal() if found is not None else ""


def _password(given: Given, mechanism: str) -> Login:
    user, password = given.text("sasl.username"), given.secret("sasl.password")
    if "sasl.jaas.config" in given:
        if user or password:
            raise InvalidInput("sasl.username and sasl.password, and sasl.jaas.config, exclude each other")
        return parse_login(_bare(given, "sasl.jaas.config"), given.where("sasl.jaas.config"))
    if not user or password is None:
        raise InvalidInput(
            f"sasl.mechanism is {mechanism}, but no user is given: set sasl.jaas.config, or "
            "sasl.username and sasl.password or sasl.password.file"
        )
    return Login(family=mechanism.partition("-")[0], username=user, password=password)


def _tokens(given: Given, entry: JaasEntry | None) -> Tokens:
    said = dict(entry.options) if entry is not None else {}
    extensions = {
        name.removeprefix(_EXTENSION): value for name, value in said.items() if name.startswith(_EXTENSION)
    }
    if given.text(_ENDPOINT):
        return Tokens(_from_endpoint(given, said), extensions)
    claims = {name.removeprefix(_CLAIM): value for name, value in said.items() if name.startswith(_CLAIM)}
    unknown = [
        name for name in said if name.startswith(_UNSECURED) and not name.startswith((_CLAIM, _LIFETIME))
    ]
    if unknown:
        raise InvalidInput(
            f"{given.where('sasl.jaas.config')}: of the options of unsecured logins restow knows "
            f"{_CLAIM}NAME and {_LIFETIME} alone"
        )
    if "sub" not in claims:
        raise InvalidInput(
            f"sasl.mechanism is OAUTHBEARER, but no user is given: set {_ENDPOINT} to the address "
            "of a token endpoint, with the client's id and secret, or to file:///path/of/a/token"
        )
    lifetime = said.get(_LIFETIME, "3600")
    if not lifetime.isascii() or not lifetime.isdigit() or not 0 < int(lifetime) < 10**9:
        raise InvalidInput(f"{given.where('sasl.jaas.config')}: {_LIFETIME} is not a number of seconds")
    return Tokens(Unsecured(claims=claims, lifetime_s=float(lifetime)), extensions)


def _from_endpoint(given: Given, said: Mapping[str, str]) -> TokenEndpoint | TokenFile:
    where, url = given.where(_ENDPOINT), given.text(_ENDPOINT)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return TokenFile(path=unquote(parts.path))
    if parts.username or parts.password:
        raise InvalidInput(
            f"{where}: leave user and password out of the URL; they have properties of their own"
        )
    if not parts.hostname or parts.scheme not in {"http", "https"}:
        raise InvalidInput(f"{where}: it is neither a URL of https nor file:///path/of/a/token")
    if parts.scheme == "http" and parts.hostname not in _HERE:
        raise InvalidInput(f"{where}: over http the client's secret would go in the clear: use https")
    client = given.text(_CLIENT_ID) or said.get("clientId", "")
    secret = given.secret(_CLIENT_SECRET)
    if secret is None and "clientSecret" in said:
        secret = Secret(said["clientSecret"])
    if not client or secret is None:
        raise InvalidInput(
            f"{where}: the client's id or secret is missing: set {_CLIENT_ID} and {_CLIENT_SECRET}, or "
            "clientId and clientSecret in sasl.jaas.config"
        )
    return TokenEndpoint(
        url=url,
        client_id=client,
        client_secret=secret,
        scope=given.text(_SCOPE) or said.get("scope", ""),
        url_encoded=given.text("sasl.oauthbearer.header.urlencode").lower() == "true",
    )


def _kerberos(given: Given, entry: JaasEntry | None) -> tuple[str, KerberosLogin]:
    """Return the brokers' name in Kerberos, and our own login."""
    said = entry.options if entry is not None else {}
    service = given.text("sasl.kerberos.service.name") or said.get("serviceName", "")
    if not service:
        raise InvalidInput(
            "sasl.mechanism is GSSAPI, Kafka's default: set sasl.kerberos.service.name to the name that the "
            "brokers have in Kerberos, most often kafka; or choose another sasl.mechanism"
        )
    if said.get("useKeyTab", "").lower() == "true" and not said.get("keyTab"):
        raise InvalidInput(
            f"{given.where('sasl.jaas.config')}: useKeyTab is true: give the keytab's path, keyTab"
        )
    _need("gssapi", "GSSAPI")
    return service, KerberosLogin(
        principal=said.get("principal", ""),
        keytab=said.get("keyTab", ""),
        ticket_cache=said.get("ticketCache", ""),
    )


def _check_amazon(given: Given, entry: JaasEntry | None, protocol: str) -> None:
    if protocol != "SASL_SSL":
        raise InvalidInput(
            f"sasl.mechanism is AWS_MSK_IAM, which needs security.protocol=SASL_SSL, not {protocol}"
        )
    if entry is not None and entry.options:
        raise InvalidInput(
            f"{given.where('sasl.jaas.config')}: options of IAMLoginModule are not supported: set "
            "AWS_PROFILE, AWS_REGION and the like in the environment, or the shared config files of AWS"
        )
    _need("botocore", "AWS_MSK_IAM")
    session = import_module("botocore.session").Session()
    if session.get_credentials() is None:
        raise InvalidInput(
            "sasl.mechanism is AWS_MSK_IAM, but no credentials of AWS are found: set AWS_PROFILE, or "
            "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        )
    if not session.get_config_variable("region"):
        raise InvalidInput("sasl.mechanism is AWS_MSK_IAM, but no region is set: set AWS_DEFAULT_REGION")


def _need(package: str, mechanism: str) -> None:
    if find_spec(package) is None:
        raise InvalidInput(
            f"sasl.mechanism is {mechanism}, which needs the Python package {package}: pip install {package}"
        )
