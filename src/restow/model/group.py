"""A member of a consumer group as an assignor sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.model.ids import Rack, TopicPartition


@frozen
class Member:
    """The subscription of one member.

    `owned` and `generation` are its partitions before, and their generation. `user_data` comes from its
    assignor, which decodes it as Kafka's does.
    """

    id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    rack: Rack | None = None
    owned: Sequence[TopicPartition] = ()
    generation: int | None = None
    user_data: bytes | None = None
