"""Follow a lake or a topic, and keep the tables of the lake current after each batch.

    topic ─► Spark's connector ─► samples in the lake ─┐
                        a lake that others write into ─┴─► tables (current.py)

With a Connect server, where no streaming query can call this process, `topic_batches.py` reads the topic.

A batch from the topic ends when its samples are in the lake and the tables say so. A batch that a kill has
cut short comes again: its samples count once, and the tables are computed from what is in the lake.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Protocol

from restow._frozen import frozen
from restow.errors import RestowError
from restow.pipeline.connect import is_connect
from restow.pipeline.stream import StreamFailed
from restow.pipeline.topic import from_topic
from restow.pipeline.topic_batches import TopicBatches

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Mapping

    from restow.pipeline.current import CurrentTables, Update
    from restow.pipeline.lake import Lake
    from restow.pipeline.stream import Stream
    from restow.pipeline.topic import Arrived

_LOOK_EVERY_S = 0.2
_ASK_EVERY_S = 30.0


@frozen
class Batch:
    """What has arrived from the topic, if it is one, and what was made of it."""

    arrived: Arrived | None = None
    update: Update | None = None
    rows: Mapping[str, int] = field(default_factory=dict)

    def document(self) -> dict[str, object]:
        arrived = {} if self.arrived is None else self.arrived.document()
        return arrived | ({} if self.update is None else self.update.document())


class FollowedTopic(Protocol):
    """A topic with samples; `checkpoint` differs once it was deleted and created again."""

    @property
    def name(self) -> str: ...

    @property
    def options(self) -> Mapping[str, str]: ...

    def checkpoint(self) -> str: ...

    def partitions(self) -> int: ...


def follow_lake(
    current: CurrentTables,
    said: Callable[[Batch], None],
    told: threading.Event,
    *,
    every_ms: int,
    once: bool,
) -> None:
    """Update the tables whenever there are new samples, until `told` is set."""
    while not told.is_set():
        update = current.update()
        if update.tables:
            said(Batch(update=update))
        if once or told.wait(every_ms / 1000):
            return


def follow_topic(
    lake: Lake,
    current: CurrentTables | None,
    topic: FollowedTopic,
    said: Callable[[Batch], None],
    told: threading.Event,
    *,
    every_ms: int,
    once: bool,
) -> None:
    """Bring samples from the topic into the lake and update its tables, until `told` is set.

    A topic that is deleted and created again is read from its beginning.
    """

    def arrived(batch: Arrived) -> None:
        said(Batch(arrived=batch, update=None if current is None else current.update(), rows=batch.rows))

    if current is not None:
        update = current.update()
        if update.tables:
            said(Batch(update=update))
    if is_connect(lake.spark):
        _follow_in_batches(lake, topic, arrived, told, every_ms=every_ms, once=once)
        return
    while not told.is_set():
        checkpoint = topic.checkpoint()
        stream = from_topic(
            lake.spark,
            topic.name,
            topic.options,
            lake,
            arrived,
            every_ms=every_ms,
            checkpoint=checkpoint,
            all_there_is=once,
        )
        try:
            with stream:
                if not _made_anew(topic, stream, checkpoint, told):
                    return
        except StreamFailed:
            if not _is_another(topic, checkpoint):
                raise


def _follow_in_batches(
    lake: Lake,
    topic: FollowedTopic,
    arrived: Callable[[Arrived], None],
    told: threading.Event,
    *,
    every_ms: int,
    once: bool,
) -> None:
    checkpoint, partitions = topic.checkpoint(), topic.partitions()
    while not told.is_set():
        batches = TopicBatches(lake, topic.name, topic.options, checkpoint)
        batches.take(partitions, arrived)
        if once or told.wait(every_ms / 1000):
            return
        try:
            checkpoint, partitions = topic.checkpoint(), topic.partitions()
        except RestowError:  # the cluster may be out of reach for a while
            continue


def _made_anew(topic: FollowedTopic, stream: Stream, checkpoint: str, told: threading.Event) -> bool:
    """Wait for the end of the stream, or until the topic is another one; return whether it is."""
    looks = 0
    while not told.is_set() and not stream.ended:
        told.wait(_LOOK_EVERY_S)
        looks += 1
        if looks * _LOOK_EVERY_S >= _ASK_EVERY_S:
            looks = 0
            if _is_another(topic, checkpoint):
                return True
    return False


def _is_another(topic: FollowedTopic, checkpoint: str) -> bool:
    """Return whether the topic is known to be another one: a cluster may be out of reach for a while."""
    try:
        return topic.checkpoint() != checkpoint
    except RestowError:
        return False
