"""The store as an elected controller may write to it: only as long as nobody was elected after it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller.errors import Deposed
from restow.cluster.store import (
    BadVersion,
    CheckVersion,
    NoNode,
    SessionExpired,
    StoreError,
    StoreUnavailable,
)
from restow.cluster.store.znodes import ControllerEpoch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from restow.cluster.store import Operation, Results, Store


class GuardedStore:
    """Every transaction first checks the version of the controller epoch's node; a stale one is Deposed."""

    def __init__(self, store: Store, epoch_version: int) -> None:
        self.read = store
        """The same session, for reading and watching."""
        self._store = store
        self._check = CheckVersion(ControllerEpoch.PATH, epoch_version)

    async def multi(self, operations: Sequence[Operation]) -> Results:
        """All or none."""
        try:
            return (await self._store.multi((self._check, *operations)))[1:]
        except StoreError as error:
            raise self._judged(error) from error

    async def multi_each(
        self, transactions: Sequence[Sequence[Operation]]
    ) -> tuple[Results | StoreError, ...]:
        """Each all or none. Raises if deposed or cut off: then nobody knows how far it came."""
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
