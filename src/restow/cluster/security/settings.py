"""What a listener asks of its clients, from Kafka's configs.

As in Kafka, a config may be given for one listener, `listener.name.<listener>.<config>`, and a login's for
one of its mechanisms, `listener.name.<listener>.<mechanism>.<config>`.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.security.oauth import TokenRules
from restow.cluster.security.scram import SCRAM_MECHANISMS
from restow.errors import InvalidInput
from restow.model.jaas import parse_entry

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.security.listeners import ListenerSpec

PLAIN = "PLAIN"
OAUTHBEARER = "OAUTHBEARER"
MECHANISMS = (PLAIN, *SCRAM_MECHANISMS, OAUTHBEARER)
_FAMILIES = {PLAIN: PLAIN, OAUTHBEARER: OAUTHBEARER} | dict.fromkeys(SCRAM_MECHANISMS, "SCRAM")
_USER = "user_"
_JAAS = "sasl.jaas.config"


@frozen
class LoginSettings:
    """How clients of a listener log in."""

    mechanisms: tuple[str, ...]
    users: Mapping[str, Mapping[str, str]] = field(repr=False)
    """Passwords by mechanism and name."""
    tokens: TokenRules
    max_reauth_ms: Mapping[str, int]
    """By mechanism, after how long a client must log in again; 0 is never."""
    failure_delay_ms: int


@frozen
class PeerCredentials:
    """How a broker logs in to others."""

    mechanism: str
    user: str
    password: str = field(repr=False)


def config_of(
    properties: Mapping[str, str], listener: str, name: str, mechanism: str | None = None
) -> str | None:
    """Return the most specific value of a config, or None."""
    prefix = f"listener.name.{listener.lower()}."
    specific = () if mechanism is None else (f"{prefix}{mechanism.lower()}.{name}",)
    for each in (*specific, f"{prefix}{name}", name):
        if each in properties:
            return properties[each]
    return None


def login_settings(properties: Mapping[str, str], listener: ListenerSpec) -> LoginSettings:
    """Return how clients of the listener log in. Raises InvalidInput."""
    stated = config_of(properties, listener.name, "sasl.enabled.mechanisms")
    named = tuple(part.strip().upper() for part in (stated or "").split(",") if part.strip())
    unknown = [each for each in named if each not in MECHANISMS]
    if unknown or not named:
        raise InvalidInput(
            f"sasl.enabled.mechanisms of listener {listener.name} must name some of "
            f"{', '.join(MECHANISMS)}, not {unknown[0] if unknown else 'nothing'}"
        )
    options = {each: _options(properties, listener.name, each) for each in named}
    users = {
        mechanism: {key.removeprefix(_USER): value for key, value in found.items() if key.startswith(_USER)}
        for mechanism, found in options.items()
    }
    return LoginSettings(
        mechanisms=named,
        users=users,
        tokens=_token_rules(properties, listener.name, options.get(OAUTHBEARER, {})),
        max_reauth_ms={
            each: _milliseconds(properties, listener.name, "connections.max.reauth.ms", "0", each)
            for each in named
        },
        failure_delay_ms=_milliseconds(
            properties, listener.name, "connection.failed.authentication.delay.ms", "100"
        ),
    )


def peer_credentials(properties: Mapping[str, str], listener: ListenerSpec) -> PeerCredentials:
    """Return how this broker logs in to others at their inter-broker listener. Raises InvalidInput."""
    config = "sasl.mechanism.inter.broker.protocol"
    mechanism = properties.get(config, "").strip().upper()
    if mechanism not in (PLAIN, *SCRAM_MECHANISMS):
        raise InvalidInput(
            f"{config} must be one of {', '.join((PLAIN, *SCRAM_MECHANISMS))}, not {mechanism or 'nothing'}: "
            f"brokers log in to each other at listener {listener.name}"
        )
    options = _options(properties, listener.name, mechanism)
    if "username" not in options or "password" not in options:
        raise InvalidInput(
            f"{_JAAS} of listener {listener.name} and mechanism {mechanism} has no username and password, "
            "with which brokers log in to each other"
        )
    return PeerCredentials(mechanism=mechanism, user=options["username"], password=options["password"])


def _options(properties: Mapping[str, str], listener: str, mechanism: str) -> Mapping[str, str]:
    """Return the options of the mechanism's login module. PLAIN cannot do without."""
    stated = config_of(properties, listener, _JAAS, mechanism)
    where = f"{_JAAS} of listener {listener} and mechanism {mechanism}"
    if stated is None:
        if mechanism == PLAIN:
            raise InvalidInput(f'{where} is missing: it names the users, as user_NAME="PASSWORD"')
        return {}
    entry = parse_entry(stated.strip(), where)
    if entry.family != _FAMILIES[mechanism]:
        raise InvalidInput(f"{where} names the login module of another mechanism")
    return entry.options


def _token_rules(properties: Mapping[str, str], listener: str, options: Mapping[str, str]) -> TokenRules:
    def stated(name: str) -> str | None:
        return config_of(properties, listener, f"sasl.oauthbearer.{name}", OAUTHBEARER)

    audiences = (part.strip() for part in (stated("expected.audience") or "").split(","))
    secret = options.get("hmacSecret")
    claim = options.get("unsecuredValidatorPrincipalClaimName") or stated("sub.claim.name") or "sub"
    skew = stated("clock.skew.seconds") or "30"
    if not skew.strip().isdecimal():
        raise InvalidInput(f"sasl.oauthbearer.clock.skew.seconds must be a number of seconds, not {skew!r}")
    return TokenRules(
        secret=None if secret is None else secret.encode(),
        audiences=tuple(filter(None, audiences)),
        issuer=stated("expected.issuer"),
        principal_claim=claim,
        clock_skew_s=float(skew),
    )


def _milliseconds(
    properties: Mapping[str, str], listener: str, name: str, default: str, mechanism: str | None = None
) -> int:
    text = (config_of(properties, listener, name, mechanism) or default).strip()
    if not text.removeprefix("-").isdecimal():
        raise InvalidInput(f"{name} must be a number of milliseconds, not {text!r}")
    return max(int(text), 0)
