"""Notifications that brokers leave in sequential znodes; the controller reads and removes them.

A leader that has changed an ISR writes the state and leaves a note; the controller informs the other brokers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from restow.cluster.controller.guarded import readable
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.store import Delete
from restow.cluster.store.znodes import IsrChangeNotification

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.controller.guarded import GuardedStore
    from restow.cluster.controller.tools import Tools

T_co = TypeVar("T_co", covariant=True)


class NotificationKind(Protocol[T_co]):
    """A class of notifications: its path and its decoder."""

    PARENT: str

    def decode(self, data: bytes, path: str) -> T_co:
        """Decode the notification, or raise UnreadableNode."""


async def read_notifications(
    store: GuardedStore, kind: NotificationKind[T_co]
) -> tuple[list[T_co], list[str]]:
    """Return the readable notifications, oldest first, and the paths of all, to remove them afterwards."""
    paths = [f"{kind.PARENT}/{name}" for name in await store.read.children(kind.PARENT)]
    nodes = await store.read.get_each(paths)
    notes = [readable(kind.decode, node, path) for path, node in zip(paths, nodes, strict=True)]
    return [note for note in notes if note is not None], paths


async def remove_notifications(store: GuardedStore, paths: Sequence[str]) -> None:
    """Remove these znodes. One that is already gone is no error."""
    if paths:
        await store.multi_each([(Delete(path),) for path in paths])


async def forget_notifications(store: GuardedStore, kind: NotificationKind[T_co]) -> None:
    """Remove all notifications of a kind. A new controller reads and sends everything anyway."""
    _, paths = await read_notifications(store, kind)
    await remove_notifications(store, paths)


async def isr_changed(tools: Tools) -> None:
    """Read every partition that a leader's note names and send its state to all brokers."""
    notes, paths = await read_notifications(tools.store, IsrChangeNotification)
    named = dict.fromkeys(partition for note in notes for partition in note.partitions)
    found = await tools.nodes.read([each for each in named if each in tools.context.assignments])
    tools.context.leaderships.update(found)
    if found:
        tools.send_metadata(found)
    await tools.at(ControllerStep.N1)
    await remove_notifications(tools.store, paths)
