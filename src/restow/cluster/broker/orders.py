"""The controller's orders to this broker: one after the other, and only those of the controller in office.

The embedded cluster has no logins, so any client can send an order. A broker obeys one that agrees with the
store: its controller is in `/controller`, with the epoch in `/controller_epoch`, and it names the epoch with
which this broker is registered, which no request tells a client.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.cluster.handlers.registry import HangUp
from restow.cluster.store import StoreError
from restow.cluster.store.znodes import ControllerEpoch, ControllerZNode
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.cluster.store import Store
    from restow.wire.messages import Message

_NOBODY = -1


class Orders:
    """Which controller was heard last. Whoever carries out an order holds `turn` meanwhile."""

    def __init__(self, store: Store) -> None:
        self.controller_epoch = 0
        self.broker_epoch = 0
        """Of this life of the broker: the transaction that registered it. 0 as long as it is not known."""
        self.turn = asyncio.Lock()
        self._controller_id = _NOBODY
        self._store = store

    async def refusal_of(self, request: Message) -> ErrorCode:
        """Say why the order must not be carried out; or NONE, and then its controller is the latest.

        Raises HangUp if the store does not know of such a controller yet: then a controller asks again.
        """
        if self.broker_epoch and request.broker_epoch != self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if request.controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if request.controller_epoch > self.controller_epoch or self._controller_id == _NOBODY:
            await self._look_up(request)
        if (request.controller_epoch, request.controller_id) != (self.controller_epoch, self._controller_id):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE

    async def _look_up(self, request: Message) -> None:
        """Learn from the store who is controller."""
        claimed = f"controller {request.controller_id} of epoch {request.controller_epoch}"
        try:
            controller, epoch = await self._store.get_each([ControllerZNode.PATH, ControllerEpoch.PATH])
            known_epoch = 0 if epoch is None else ControllerEpoch.decode(epoch.data).epoch
            known_id = _NOBODY if controller is None else ControllerZNode.decode(controller.data).broker_id
        except StoreError as error:
            raise HangUp(f"an order of {claimed} cannot be checked: {error}") from error
        if request.controller_epoch > known_epoch:
            raise HangUp(f"an order of {claimed}, but the store knows of epoch {known_epoch} only")
        if known_id != _NOBODY:
            self.controller_epoch, self._controller_id = known_epoch, known_id
