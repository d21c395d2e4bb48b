"""Live brokers, the controller, the cluster id and its features."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from restow._frozen import frozen
from restow.cluster.store.errors import UnreadableNode
from restow.cluster.store.znodes.documents import Document, render

if TYPE_CHECKING:
    from collections.abc import Mapping

_ENDPOINT = re.compile(r"([\w.-]+)://(?:\[([\w.:%-]+)\]|([\w.-]*)):([0-9]{1,5})", re.ASCII)
_PLAINTEXT = "PLAINTEXT"


@frozen
class ControllerZNode:
    """`/controller`, ephemeral: the broker that is controller. Version 1 is read too."""

    PATH: ClassVar = "/controller"

    broker_id: int
    timestamp_ms: int
    kraft_controller_epoch: int = -1
    """Set only while a cluster migrates to KRaft."""

    def encode(self) -> bytes:
        return render(
            {
                "version": 2,
                "brokerid": self.broker_id,
                "timestamp": str(self.timestamp_ms),
                "kraftControllerEpoch": self.kraft_controller_epoch,
            }
        )

    @classmethod
    def decode(cls, data: bytes, path: str = PATH) -> ControllerZNode:
        found = Document.parse(path, data, versions=(1, 2))
        return cls(
            broker_id=found.integer("brokerid"),
            timestamp_ms=found.long("timestamp"),
            kraft_controller_epoch=found.integer("kraftControllerEpoch") if found.version >= 2 else -1,
        )


@dataclass(frozen=True, slots=True)
class ControllerEpoch:
    """`/controller_epoch`: the number of elections so far, as plain digits."""

    PATH: ClassVar = "/controller_epoch"

    epoch: int

    def encode(self) -> bytes:
        return str(self.epoch).encode()

    @classmethod
    def decode(cls, data: bytes, path: str = PATH) -> ControllerEpoch:
        if not re.fullmatch(rb"[0-9]{1,10}", data) or int(data) >= 2**31:
            raise UnreadableNode(path, f"{data[:40]!r} is not an epoch")
        return cls(int(data))


@dataclass(frozen=True, slots=True)
class AdvertisedEndpoint:
    """An advertised listener: `NAME://host:port`, and its security protocol."""

    name: str
    host: str
    port: int
    protocol: str = _PLAINTEXT

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


@frozen
class BrokerRegistration:
    """`/brokers/ids/<id>`, ephemeral: a live broker. Versions 1 to 5 are read, 5 is written."""

    PARENT: ClassVar = "/brokers/ids"

    endpoints: tuple[AdvertisedEndpoint, ...]
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = -1
    features: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By name, `min_version` and `max_version`."""
    cordoned: bool = False
    """Whether all log dirs are cordoned. Kafka with ZooKeeper has no such field, and ignores it."""

    @classmethod
    def path(cls, broker_id: int) -> str:
        return f"{cls.PARENT}/{broker_id}"

    def encode(self) -> bytes:
        """Encode. Host and port repeat the first plaintext listener, for readers of version 1."""
        plain = next((each for each in self.endpoints if each.protocol == _PLAINTEXT), None)
        fields: dict[str, object] = {
            "features": {name: dict(versions) for name, versions in self.features.items()},
            "listener_security_protocol_map": {each.name: each.protocol for each in self.endpoints},
            "endpoints": [str(each) for each in self.endpoints],
        }
        if self.rack is not None:
            fields["rack"] = self.rack
        if self.cordoned:
            fields["cordoned"] = True
        fields |= {
            "jmx_port": self.jmx_port,
            "port": plain.port if plain else -1,
            "host": plain.host if plain else None,
            "version": 5,
            "timestamp": str(self.timestamp_ms),
        }
        return render(fields)

    @classmethod
    def decode(cls, data: bytes, path: str) -> BrokerRegistration:
        found = Document.parse(path, data, versions=range(1, 6))
        features = found.document("features")
        return cls(
            endpoints=_endpoints(found, path),
            timestamp_ms=found.long("timestamp") if found.has("timestamp") else -1,
            rack=found.text("rack") if found.has("rack") else None,
            jmx_port=found.integer("jmx_port") if found.has("jmx_port") else -1,
            features={name: _versions(features.document(name)) for name in features.names()},
            cordoned=found.has("cordoned"),
        )


def _endpoints(found: Document, path: str) -> tuple[AdvertisedEndpoint, ...]:
    if found.version == 1:
        return (AdvertisedEndpoint(_PLAINTEXT, found.text("host"), found.integer("port")),)
    protocols = found.document("listener_security_protocol_map")
    endpoints = []
    for text in found.texts("endpoints"):
        match = _ENDPOINT.fullmatch(text)
        if match is None or int(match[4]) >= 2**16:
            raise UnreadableNode(path, f"{text!r} is not an endpoint")
        name = match[1]
        protocol = protocols.text(name) if protocols.has(name) else name
        endpoints.append(AdvertisedEndpoint(name, match[2] or match[3], int(match[4]), protocol))
    return tuple(endpoints)


def _versions(found: Document) -> dict[str, int]:
    return {key: found.integer(key) for key in found.names()}


@dataclass(frozen=True, slots=True)
class ClusterId:
    """`/cluster/id`: 22 characters of base64. The version is a string; Kafka has only written 1."""

    PATH: ClassVar = "/cluster/id"

    id: str

    def encode(self) -> bytes:
        return render({"version": "1", "id": self.id})

    @classmethod
    def decode(cls, data: bytes, path: str = PATH) -> ClusterId:
        found = Document.parse(path, data, versions=("1",))
        return cls(found.text("id"))


@frozen
class FeatureState:
    """`/feature`: whether the cluster has finalized features, and which. Kafka requires it."""

    PATH: ClassVar = "/feature"
    ENABLED: ClassVar = 1

    status: int = ENABLED
    features: Mapping[str, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        return render({"features": dict(self.features), "version": 2, "status": self.status})

    @classmethod
    def decode(cls, data: bytes, path: str = PATH) -> FeatureState:
        found = Document.parse(path, data, versions=(1, 2))
        features = found.document("features")
        if found.version == 1:
            levels = {name: features.document(name).integer("max_version_level") for name in features.names()}
        else:
            levels = _versions(features)
        return cls(status=found.integer("status"), features=levels)


@frozen
class ProducerIdBlock:
    """`/latest_producer_id_block`: the last allocated block of producer ids."""

    PATH: ClassVar = "/latest_producer_id_block"

    broker_id: int
    first: int
    last: int

    def encode(self) -> bytes:
        return render(
            {
                "version": 1,
                "broker": self.broker_id,
                "block_start": str(self.first),
                "block_end": str(self.last),
            }
        )

    @classmethod
    def decode(cls, data: bytes, path: str = PATH) -> ProducerIdBlock:
        found = Document.parse(path, data, versions=(1,))
        return cls(
            broker_id=found.integer("broker"), first=found.long("block_start"), last=found.long("block_end")
        )
