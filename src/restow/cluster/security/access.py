"""Listeners and users in short, as the command line and tests state them, and Kafka's configs for them."""

from __future__ import annotations

from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cluster.security.authorizer import AUTHORIZERS
from restow.cluster.security.listeners import SecurityProtocol
from restow.cluster.security.principal import USER, Principal
from restow.cluster.security.scram import SCRAM_MECHANISMS
from restow.cluster.security.settings import PLAIN
from restow.errors import InvalidInput
from restow.runtime.certificates import Certificates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

_PROTOCOLS = {
    (True, False): SecurityProtocol.SASL_PLAINTEXT,
    (True, True): SecurityProtocol.SASL_SSL,
    (False, True): SecurityProtocol.SSL,
}
"""By whether there are users and certificates."""
_BROKER_USER = "restow-broker"
_MODULES = "org.apache.kafka.common.security"
_LOGIN_MODULES = {PLAIN: f"{_MODULES}.plain.PlainLoginModule"} | dict.fromkeys(
    SCRAM_MECHANISMS, f"{_MODULES}.scram.ScramLoginModule"
)


@frozen
class Access:
    """A cluster's listeners by name, and its users with their passwords."""

    listeners: tuple[tuple[str, SecurityProtocol], ...]
    """The first is the brokers' own, too."""
    users: Mapping[str, str] = field(repr=False)
    broker_user: str | None = None
    """The user as whom brokers log in to each other."""
    super_users: tuple[str, ...] = ()
    """Users who may do everything and need no ACLs; without any, there is no authorizer."""
    certificates: Certificates | None = None
    """What brokers show at listeners of the protocols SSL and SASL_SSL."""

    @classmethod
    def parse(
        cls,
        listeners: Sequence[str],
        users: Mapping[str, str],
        broker_user: str | None = None,
        super_users: Sequence[str] = (),
        tls: Path | str | None = None,
    ) -> Self:
        """Parse listeners such as `LOGIN:SASL_PLAINTEXT`, or a protocol alone. Raises InvalidInput.

        `tls` is a folder with certificates. Users or certificates without listeners are for one listener.
        """
        if not listeners and (users or tls is not None):
            listeners = (_PROTOCOLS[bool(users), tls is not None],)
        found = tuple(map(_listener, listeners))
        names = [name for name, _ in found]
        if tls is not None and not any(protocol.has_tls for _, protocol in found):
            raise InvalidInput(
                f"none of the listeners {', '.join(names)} uses TLS: "
                "one must be of the protocol SSL or SASL_SSL"
            )
        if len(set(names)) != len(names):
            raise InvalidInput(f"two listeners have the same name: {', '.join(names)}")
        with_login = [name for name, protocol in found if protocol.has_login]
        if with_login and not users:
            raise InvalidInput(f"nobody could log in at listener {with_login[0]}: name the users")
        if users and not with_login:
            raise InvalidInput(
                f"users log in at none of the listeners {', '.join(names)}: one must be of the protocol "
                "SASL_PLAINTEXT or SASL_SSL"
            )
        if found and found[0][1].has_login and broker_user not in users:
            raise InvalidInput(
                f"brokers log in at listener {names[0]}, too: name the user as whom they do, "
                "and give the password"
            )
        return cls(
            listeners=found,
            users=dict(users),
            broker_user=broker_user,
            super_users=tuple(each if ":" in each else str(Principal(USER, each)) for each in super_users),
            certificates=None if tls is None else Certificates(Path(tls)),
        )

    @classmethod
    def of_cluster(
        cls,
        listeners: Sequence[str],
        users: Mapping[str, str],
        password: str,
        super_users: Sequence[str] = (),
        tls: Path | str | None = None,
    ) -> Self:
        """Return the same with one user more, the brokers themselves, who have this password."""
        if not users:
            return cls.parse(listeners, users, None, super_users, tls)
        return cls.parse(listeners, {**users, _BROKER_USER: password}, _BROKER_USER, super_users, tls)

    def properties(self, host: str, ports: Sequence[int]) -> dict[str, str]:
        """Return the configs of a broker whose listeners have these ports; none for the default listener."""
        acls = {}
        if self.super_users:
            acls = {"authorizer.class.name": AUTHORIZERS[0], "super.users": ";".join(self.super_users)}
        if not self.listeners:
            return acls
        shown = f"[{host}]" if ":" in host else host
        pairs = zip(self.listeners, ports, strict=True)
        found = {
            **acls,
            "listeners": ",".join(f"{name}://{shown}:{port}" for (name, _), port in pairs),
            "listener.security.protocol.map": ",".join(f"{name}:{kind}" for name, kind in self.listeners),
            "inter.broker.listener.name": self.listeners[0][0],
        }
        if self.certificates is not None:
            found["ssl.keystore.location"] = str(self.certificates.server)
            found["ssl.truststore.location"] = str(self.certificates.authority)
        if self.users:
            found["sasl.enabled.mechanisms"] = ",".join(_LOGIN_MODULES)
            found["sasl.mechanism.inter.broker.protocol"] = PLAIN
            for name, kind in self.listeners:
                if kind.has_login:
                    found |= self._logins(name)
        return found

    def _logins(self, listener: str) -> dict[str, str]:
        options = {f"user_{name}": password for name, password in self.users.items()}
        if self.broker_user is not None:
            options |= {"username": self.broker_user, "password": self.users[self.broker_user]}
        stated = " ".join(f"{_quoted(name)}={_quoted(value)}" for name, value in options.items())
        return {
            f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config": (
                f"{module} required {stated};"
            )
            for mechanism, module in _LOGIN_MODULES.items()
        }


def _listener(text: str) -> tuple[str, SecurityProtocol]:
    name, _, protocol = text.upper().rpartition(":")
    if protocol not in SecurityProtocol.__members__:
        raise InvalidInput(
            f"{text!r} is no listener: write a protocol, or NAME:PROTOCOL, "
            f"with one of {', '.join(SecurityProtocol)}"
        )
    return name or protocol, SecurityProtocol[protocol]


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def parse_users(text: str, where: str) -> dict[str, str]:
    """Parse lines of NAME:PASSWORD. Errors do not quote them. Raises InvalidInput."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, colon, password = line.partition(":")
        if not (colon and name.strip() and password):
            raise InvalidInput(f"{where}: line {number} is not NAME:PASSWORD")
        if name.strip() in found:
            raise InvalidInput(f"{where}: line {number} names a user again")
        found[name.strip()] = password
    if not found:
        raise InvalidInput(f"{where}: it names no users; write lines of NAME:PASSWORD")
    return found
