"""A note for a plan's reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen

if TYPE_CHECKING:
    from restow.model import TopicPartition


@frozen
class Note:
    """One sentence. A warning is about a problem that the plan does not fix."""

    text: str
    partitions: tuple[TopicPartition, ...] = ()
    """All partitions concerned."""
    warning: bool = False
    advice: str = ""
