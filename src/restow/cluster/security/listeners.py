"""The listeners of a broker: names, addresses and security protocols, from Kafka's configs."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Mapping

_LISTENER = re.compile(r"([\w.-]+)://(?:\[([\w.:%-]+)\]|([\w.-]*)):([0-9]{1,5})", re.ASCII)
_LARGEST_PORT = 65_535


class SecurityProtocol(StrEnum):
    """How a listener's clients are encrypted and authenticated."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"

    @property
    def has_login(self) -> bool:
        """Return whether clients log in by SASL."""
        return self in (SecurityProtocol.SASL_PLAINTEXT, SecurityProtocol.SASL_SSL)

    @property
    def has_tls(self) -> bool:
        return self in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


@frozen
class ListenerSpec:
    """One listener: where it binds, and what clients are told."""

    name: str
    protocol: SecurityProtocol
    host: str
    port: int
    """0 picks a free port."""
    advertised: tuple[str, int] | None = None
    """Host and port for clients, if they differ; a port of 0 is the one that was bound."""

    def bound_to(self, port: int) -> ListenerSpec:
        """Return the listener with the port that it has got."""
        return replace(self, port=port)

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port as clients are told them."""
        host, port = self.advertised or (self.host, self.port)
        return host, port or self.port


def listeners_of(properties: Mapping[str, str], host: str, port: int) -> tuple[ListenerSpec, ...]:
    """Return the listeners that `listeners` names; without it, one named PLAINTEXT at this address.

    A listener without a host binds to `host`, where Kafka would bind to every interface.
    """
    stated = properties.get("listeners", "").strip()
    if not stated:
        return (ListenerSpec(name="PLAINTEXT", protocol=SecurityProtocol.PLAINTEXT, host=host, port=port),)
    protocols = _protocols(properties.get("listener.security.protocol.map", ""))
    advertised = _addresses("advertised.listeners", properties.get("advertised.listeners", ""))
    bound = _addresses("listeners", stated)
    for name in advertised.keys() - bound.keys():
        raise InvalidInput(f"advertised.listeners names {name}, which is none of listeners")
    ports = [port for _, port in bound.values() if port]
    if len(ports) != len(set(ports)):
        raise InvalidInput(f"listeners: {stated!r} has two listeners on the same port")
    return tuple(
        ListenerSpec(
            name=name,
            protocol=_protocol_of(name, protocols),
            host=at_host or host,
            port=at_port,
            advertised=advertised.get(name),
        )
        for name, (at_host, at_port) in bound.items()
    )


def inter_broker_listener(properties: Mapping[str, str], listeners: tuple[ListenerSpec, ...]) -> ListenerSpec:
    """Return the listener at which other brokers find this one."""
    name = properties.get("inter.broker.listener.name")
    if name is not None:
        found = next((each for each in listeners if each.name == name.strip().upper()), None)
        if found is None:
            raise InvalidInput(f"inter.broker.listener.name is {name}, which is none of listeners")
        return found
    protocol = properties.get("security.inter.broker.protocol", SecurityProtocol.PLAINTEXT).strip()
    found = next((each for each in listeners if each.protocol == protocol), None)
    if found is None:
        raise InvalidInput(
            f"no listener has the protocol {protocol}, by which brokers reach each other: "
            "name one in inter.broker.listener.name"
        )
    return found


def _addresses(config: str, text: str) -> dict[str, tuple[str, int]]:
    found: dict[str, tuple[str, int]] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        match = _LISTENER.fullmatch(part)
        if match is None or int(match[4]) > _LARGEST_PORT:
            raise InvalidInput(f"{config}: {part!r} is not NAME://host:port")
        name = match[1].upper()
        if name in found:
            raise InvalidInput(f"{config} names {name} twice")
        found[name] = (match[2] or match[3], int(match[4]))
    return found


def _protocols(text: str) -> dict[str, SecurityProtocol]:
    found = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, colon, protocol = part.rpartition(":")
        if not colon or protocol.upper() not in SecurityProtocol.__members__:
            raise InvalidInput(
                f"listener.security.protocol.map: {part!r} is not NAME:PROTOCOL "
                f"with one of {', '.join(SecurityProtocol)}"
            )
        found[name.strip().upper()] = SecurityProtocol[protocol.upper()]
    return found


def _protocol_of(name: str, protocols: Mapping[str, SecurityProtocol]) -> SecurityProtocol:
    found = protocols.get(name)
    if found is None and not protocols:
        found = SecurityProtocol.__members__.get(name)
    if found is None:
        raise InvalidInput(
            f"listeners: the protocol of {name} is not known: "
            f"say {name}:PROTOCOL in listener.security.protocol.map"
        )
    return found
