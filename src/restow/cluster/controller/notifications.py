"""Notifications that brokers leave in sequential znodes; the controller reads and removes them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from restow.cluster.store import Delete, UnreadableNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.controller.guarded import GuardedStore

T_co = TypeVar("T_co", covariant=True)
_log = logging.getLogger(__name__)


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
    notes = []
    for path, node in zip(paths, await store.read.get_each(paths), strict=True):
        if node is None:
            continue
        try:
            notes.append(kind.decode(node.data, path))
        except UnreadableNode as error:
            _log.error("skipped: %s", error)
    return notes, paths


async def remove_notifications(store: GuardedStore, paths: Sequence[str]) -> None:
    """Remove these znodes. One that is already gone is no error."""
    if paths:
        await store.multi_each([(Delete(path),) for path in paths])
