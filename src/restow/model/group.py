"""A consumer group's member as an assignor sees it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from restow.model.ids import Rack, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What one member said when it joined.

    `owned` and `generation` are what it held before and since when. `user_data` is what its assignor
    put into the subscription; an assignor that finds something there decodes it as Kafka's does.
    """

    id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    rack: Rack | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    user_data: bytes | None = None
