"""ACLs, by resource, and the notes that they have changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restow.cluster.store.znodes.documents import Document, render


@dataclass(frozen=True, slots=True)
class AclZNode:
    """`/kafka-acl/<type>/<name>`, `/kafka-acl-extended/prefixed/<type>/<name>`: who may do what."""

    LITERAL: ClassVar = "/kafka-acl"
    EXTENDED: ClassVar = "/kafka-acl-extended"
    PREFIXED: ClassVar = "/kafka-acl-extended/prefixed"
    TYPES: ClassVar = ("Topic", "Group", "Cluster", "TransactionalId", "DelegationToken", "User")

    entries: tuple[tuple[str, str, str, str], ...]
    """Principal, permission, operation and host."""

    def encode(self) -> bytes:
        acls = [
            {"principal": principal, "permissionType": permission, "host": host, "operation": operation}
            for principal, permission, operation, host in self.entries
        ]
        return render({"acls": acls, "version": 1})

    @classmethod
    def decode(cls, data: bytes, path: str) -> AclZNode:
        found = Document.parse(path, data, versions=(1,))
        return cls(
            tuple(
                (
                    each.text("principal"),
                    each.text("permissionType"),
                    each.text("operation"),
                    each.text("host"),
                )
                for each in found.documents("acls")
            )
        )


@dataclass(frozen=True, slots=True)
class AclChange:
    """`/kafka-acl-changes/acl_changes_*`, `/kafka-acl-extended-changes/acl_changes_*`."""

    LITERAL: ClassVar = "/kafka-acl-changes"
    EXTENDED: ClassVar = "/kafka-acl-extended-changes"
    NAME: ClassVar = "acl_changes_"

    resource_type: str
    """As Kafka names it in notes: TRANSACTIONAL_ID."""
    name: str
    is_prefixed: bool

    @property
    def prefix(self) -> str:
        """Return the path of a new note, without its number."""
        return f"{self.EXTENDED if self.is_prefixed else self.LITERAL}/{self.NAME}"

    def encode(self) -> bytes:
        if not self.is_prefixed:
            return f"{self.resource_type}:{self.name}".encode()
        return render(
            {
                "version": 1,
                "resourceType": self.resource_type,
                "name": self.name,
                "patternType": "PREFIXED",
            }
        )
