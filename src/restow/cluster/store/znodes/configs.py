"""Dynamic configs of topics and brokers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from restow.cluster.store.znodes.documents import Document, render

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class EntityConfig:
    """`/config/topics/<topic>`, `/config/brokers/<id>`: configs that differ from the default."""

    PARENT: ClassVar = "/config"
    TOPICS: ClassVar = "/config/topics"
    BROKERS: ClassVar = "/config/brokers"
    ALL_BROKERS: ClassVar = "<default>"

    values: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def topic_path(cls, topic: str) -> str:
        return f"{cls.TOPICS}/{topic}"

    @classmethod
    def broker_path(cls, broker_id: int | None) -> str:
        """Return the path of one broker's configs, or without an id of all brokers'."""
        return f"{cls.BROKERS}/{cls.ALL_BROKERS if broker_id is None else broker_id}"

    def encode(self) -> bytes:
        return render({"version": 1, "config": dict(self.values)})

    @classmethod
    def decode(cls, data: bytes, path: str) -> EntityConfig:
        """Decode. A node without data is an empty config, as in Kafka."""
        if not data:
            return cls()
        found = Document.parse(path, data, versions=(1,)).document("config")
        return cls({key: found.text(key) for key in found.names()})
