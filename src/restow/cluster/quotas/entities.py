"""Whom a quota is for, and where it is stored: Kafka's names, in messages and in the store.

    user and client id     /config/users/<user>/clients/<client id>
    user                   /config/users/<user>
    client id              /config/clients/<client id>
    address                /config/ips/<address>

`<default>` stands for all that have no quota of their own. Names are escaped, so nobody else is called that.
"""

from __future__ import annotations

import ipaddress
import math
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.store.znodes import EntityConfig
from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE = "producer_byte_rate", "consumer_byte_rate"
REQUEST_PERCENTAGE, MUTATION_RATE = "request_percentage", "controller_mutation_rate"
CONNECTION_RATE = "connection_creation_rate"
OF_CLIENTS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, REQUEST_PERCENTAGE, MUTATION_RATE)
_WHOLE_NUMBERS = (PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, CONNECTION_RATE)
_LARGEST = {CONNECTION_RATE: 2**31 - 1}
_MUCH_TOO_FINE = 1e-6


class InvalidQuota(RestowError):
    """A quota, or a question about quotas, that Kafka refuses."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        super().__init__(message)
        self.code = code


class QuotaEntity(NamedTuple):
    """Names as they are in the store, None for what the quota does not depend on."""

    user: str | None = None
    client_id: str | None = None
    ip: str | None = None

    @classmethod
    def of(cls, parts: Sequence[tuple[str, str | None]]) -> QuotaEntity:
        """Return the entity that a message names; None stands for the default. Raises InvalidQuota."""
        named: dict[str, str] = {}
        for kind, name in parts:
            if kind not in (USER, CLIENT_ID, IP):
                raise InvalidQuota(f"Unhandled client quota entity type: {kind}")
            if name == "":
                raise InvalidQuota(f"Empty {kind} not supported")
            named[kind] = EntityConfig.DEFAULT if name is None else EntityConfig.escaped(name)
        if not named:
            raise InvalidQuota("Invalid empty client quota entity")
        if IP in named:
            if len(named) > 1:
                raise InvalidQuota(
                    "Invalid quota entity combination, IP entity should not be used with user/client ID"
                    " entity."
                )
            _check_address(dict(parts)[IP])
        return cls(named.get(USER), named.get(CLIENT_ID), named.get(IP))

    @property
    def path(self) -> str:
        """Return where its quotas are stored."""
        if self.ip is not None:
            return f"{EntityConfig.IPS}/{self.ip}"
        if self.user is None:
            return f"{EntityConfig.CLIENTS}/{self.client_id}"
        of_user = f"{EntityConfig.USERS}/{self.user}"
        return of_user if self.client_id is None else f"{of_user}/{EntityConfig.OF_CLIENTS}/{self.client_id}"

    @classmethod
    def at(cls, entity_path: str) -> QuotaEntity | None:
        """Return the entity of a path below `/config`; None if it is not one."""
        match entity_path.split("/"):
            case ["users", user]:
                return cls(user=user)
            case ["users", user, EntityConfig.OF_CLIENTS, client_id]:
                return cls(user=user, client_id=client_id)
            case ["clients", client_id]:
                return cls(client_id=client_id)
            case ["ips", ip]:
                return cls(ip=ip)
        return None

    def parts(self) -> dict[str, str | None]:
        """Return types and names as messages have them; None stands for the default."""
        named = {USER: self.user, CLIENT_ID: self.client_id, IP: self.ip}
        return {
            kind: None if name == EntityConfig.DEFAULT else EntityConfig.unescaped(name)
            for kind, name in named.items()
            if name is not None
        }


def quotas_in(entity: QuotaEntity, values: Mapping[str, str]) -> dict[str, float]:
    """Return the quotas among an entity's configs. Unreadable ones are left out: any tool may write them."""
    found = {}
    for name in _names_of(entity):
        try:
            number = float(values[name])
        except (KeyError, ValueError):
            continue
        if number > 0:
            found[name] = number
    return found


def written(entity: QuotaEntity, name: str, value: float) -> str:
    """Return a quota as text for the store. Raises InvalidQuota."""
    if name not in _names_of(entity):
        raise InvalidQuota(f"Invalid configuration key {name}")
    if not value > 0 or math.isinf(value):
        raise InvalidQuota(f"Quota {name} must be greater than 0")
    if name not in _WHOLE_NUMBERS:
        return repr(value)
    whole = int(value + _MUCH_TOO_FINE)
    if abs(whole - value) > _MUCH_TOO_FINE or whole > _LARGEST.get(name, 2**63 - 1):
        raise InvalidQuota(f"Configuration {name} must be a Long value")
    return str(whole)


def _names_of(entity: QuotaEntity) -> tuple[str, ...]:
    return OF_CLIENTS if entity.ip is None else (CONNECTION_RATE,)


def _check_address(name: str | None) -> None:
    if name is not None:
        try:
            ipaddress.ip_address(name)
        except ValueError:
            raise InvalidQuota(f"{name} is not a valid IP or resolvable host.") from None
