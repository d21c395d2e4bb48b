"""Dynamic configs of topics, brokers and users, and the quotas of users, client ids and addresses."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote, unquote

from restow.cluster.store.errors import UnreadableNode
from restow.cluster.store.znodes.documents import Document, render

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.store.protocol import StoreNode

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class EntityConfig:
    """`/config/topics/<topic>`, `/config/brokers/<id>`, `/config/users/<name>`, …: configs that are set."""

    PARENT: ClassVar = "/config"
    TOPICS: ClassVar = "/config/topics"
    BROKERS: ClassVar = "/config/brokers"
    USERS: ClassVar = "/config/users"
    CLIENTS: ClassVar = "/config/clients"
    IPS: ClassVar = "/config/ips"
    OF_CLIENTS: ClassVar = "clients"
    """Below a user, the parent of the client ids whose quotas are for this user."""
    DEFAULT: ClassVar = "<default>"
    """Stands for all brokers, users, client ids or addresses that have no configs of their own."""

    values: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def topic_path(cls, topic: str) -> str:
        return f"{cls.TOPICS}/{topic}"

    @classmethod
    def broker_path(cls, broker_id: int | None) -> str:
        """Return the path of one broker's configs, or without an id of all brokers'."""
        return f"{cls.BROKERS}/{cls.DEFAULT if broker_id is None else broker_id}"

    @classmethod
    def user_path(cls, user: str) -> str:
        """Return the path of a user's configs."""
        return f"{cls.USERS}/{cls.escaped(user)}"

    @staticmethod
    def escaped(name: str) -> str:
        """Return the name of a user's or client's node: escaped as Java does it in addresses."""
        return quote(name, safe="").replace("~", "%7E")

    @staticmethod
    def unescaped(name: str) -> str:
        """Return the user or client whose configs are in a node of that name."""
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

    @classmethod
    def values_at(cls, path: str, node: StoreNode | None) -> Mapping[str, str]:
        """Return a znode's configs; empty if it is missing or unreadable."""
        if node is None:
            return {}
        try:
            return cls.decode(node.data, path).values
        except UnreadableNode as error:
            log.warning("skipped: %s", error)
            return {}
