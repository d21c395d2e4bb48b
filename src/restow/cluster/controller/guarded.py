"""Store access for an elected controller: writes fail once a later controller is elected."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeVar

from restow.cluster.controller.errors import Deposed
from restow.cluster.store import (
    BadVersion,
    CheckVersion,
    NoNode,
    SessionExpired,
    StoreError,
    StoreUnavailable,
    UnreadableNode,
)
from restow.cluster.store.znodes import ControllerEpoch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from restow.cluster.store import Operation, Results, Store, StoreNode

T = TypeVar("T")
_log = logging.getLogger(__name__)


def readable(decode: Callable[[bytes, str], T], node: StoreNode | None, path: str) -> T | None:
    """Return what a znode says; None if it does not exist, or if it is unreadable, which is logged."""
    if node is None:
        return None
    try:
        return decode(node.data, path)
    except UnreadableNode as error:
        _log.error("skipped: %s", error)
        return None


class GuardedStore:
    """Adds a check of the `/controller_epoch` version to every transaction; raises Deposed if it is stale."""

    def __init__(self, store: Store, epoch_version: int) -> None:
        self.read = store
        """The same session, for reads and watches."""
        self._store = store
        self._check = CheckVersion(ControllerEpoch.PATH, epoch_version)

    async def multi(self, operations: Sequence[Operation]) -> Results:
        """Write all operations or none."""
        try:
            return (await self._store.multi((self._check, *operations)))[1:]
        except StoreError as error:
            raise self._judged(error) from error

    async def multi_each(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> tuple[Results | StoreError, ...]:
        """Write each group whole or not at all. If this raises, some groups may be written and others not."""
        answers = await self._store.multi_each([(self._check, *each) for each in transactions])
        outcomes: list[Results | StoreError] = []
        for answer in answers:
            if isinstance(answer, StoreError):
                judged = self._judged(answer)
                if judged is not answer or isinstance(answer, (SessionExpired, StoreUnavailable)):
                    raise judged
                outcomes.append(answer)
            else:
                outcomes.append(answer[1:])
        return tuple(outcomes)

    def _judged(self, error: StoreError) -> Deposed | StoreError:
        if isinstance(error, (BadVersion, NoNode)) and error.path == self._check.path:
            return Deposed("another controller was elected: nothing was written")
        return error
