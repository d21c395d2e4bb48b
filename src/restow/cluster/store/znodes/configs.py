"""Dynamic configs of topics, brokers and users."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote, unquote

from restow.cluster.store.znodes.documents import Document, render

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class EntityConfig:
    """`/config/topics/<topic>`, `/config/brokers/<id>`, `/config/users/<name>`: configs that are set."""

    PARENT: ClassVar = "/config"
    TOPICS: ClassVar = "/config/topics"
    BROKERS: ClassVar = "/config/brokers"
    USERS: ClassVar = "/config/users"
    ALL_BROKERS: ClassVar = "<default>"

    values: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def topic_path(cls, topic: str) -> str:
        return f"{cls.TOPICS}/{topic}"

    @classmethod
    def broker_path(cls, broker_id: int | None) -> str:
        """Return the path of one broker's configs, or without an id of all brokers'."""
        return f"{cls.BROKERS}/{cls.ALL_BROKERS if broker_id is None else broker_id}"

    @classmethod
    def user_path(cls, user: str) -> str:
        """Return the path of a user's configs; the name is escaped as Java does it in addresses."""
        return f"{cls.USERS}/{quote(user, safe='').replace('~', '%7E')}"

    @staticmethod
    def user_of(name: str) -> str:
        """Return the user whose configs are in a node of that name."""
        return unquote(name)

    def encode(self) -> bytes:
        return render({"version": 1, "config": dict(self.values)})

    @classmethod
    def decode(cls, data: bytes, path: str) -> EntityConfig:
        """Decode. A node without data is an empty config, as in Kafka."""
        if not data:
            return cls()
        found = Document.parse(path, data, versions=(1,)).document("config")
        return cls({key: found.text(key) for key in found.names()})
