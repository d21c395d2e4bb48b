"""A note for a plan's reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restow.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One sentence. A warning is about a problem that the plan does not fix."""

    text: str
    partitions: tuple[TopicPartition, ...] = ()
    """All partitions concerned."""
    warning: bool = False
    advice: str = ""
