"""What whoever asks may do, as far as a cluster tells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Operations by Kafka's names, say "ALTER"; None where they were not told."""

    cluster: frozenset[str] | None = None
    topics: Mapping[str, frozenset[str] | None] = field(default_factory=dict)
    """Of the topics that were asked for; one that may not even be described has none."""
