"""Notifications in sequential znodes, from brokers to the controller and to each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restow.cluster.store.errors import UnreadableNode
from restow.cluster.store.znodes.documents import Document, PartitionList, render


class IsrChangeNotification(PartitionList):
    """`/isr_change_notification/isr_change_*`: a leader changed the ISR of these partitions."""

    PARENT: ClassVar = "/isr_change_notification"
    PREFIX: ClassVar = "/isr_change_notification/isr_change_"


@dataclass(frozen=True, slots=True)
class LogDirEvent:
    """`/log_dir_event_notification/log_dir_event_*`: a log dir of this broker failed."""

    PARENT: ClassVar = "/log_dir_event_notification"
    PREFIX: ClassVar = "/log_dir_event_notification/log_dir_event_"
    FAILURE: ClassVar = 1

    broker_id: int

    def encode(self) -> bytes:
        return render({"version": 1, "broker": self.broker_id, "event": self.FAILURE})

    @classmethod
    def decode(cls, data: bytes, path: str) -> LogDirEvent:
        found = Document.parse(path, data, versions=(1,))
        if (event := found.integer("event")) != cls.FAILURE:
            raise UnreadableNode(path, f"{event} is not an event of a log directory")
        return cls(found.integer("broker"))


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """`/config/changes/config_change_*`: the config of that entity (`topics/t`, `brokers/1`) changed."""

    PARENT: ClassVar = "/config/changes"
    PREFIX: ClassVar = "/config/changes/config_change_"

    entity_path: str

    def encode(self) -> bytes:
        return render({"version": 2, "entity_path": self.entity_path})

    @classmethod
    def decode(cls, data: bytes, path: str) -> ConfigChange:
        """Decode. Version 1 has type and name in separate fields."""
        found = Document.parse(path, data, versions=(1, 2))
        if found.version == 1:
            entity_path = f"{found.text('entity_type')}/{found.text('entity_name')}"
        else:
            entity_path = found.text("entity_path")
        if not all(entity_path.partition("/")):
            raise UnreadableNode(path, f"{entity_path!r} does not name an entity")
        return cls(entity_path)
