"""Checks the controller's requests to this broker and serializes them.

Without logins and ACLs, any client can send such a request. So a broker accepts only those that agree with
the store: the controller is in `/controller`, its epoch in `/controller_epoch`, and the request names the
epoch of this broker's registration, which no response reveals to a client.
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


class ControllerRequests:
    """Remembers the latest controller. A handler holds `turn` while it carries out a request."""

    def __init__(self, store: Store) -> None:
        self.controller_epoch = 0
        self.broker_epoch = 0
        """Broker epoch: the transaction of this broker's registration. 0 until it is known."""
        self.turn = asyncio.Lock()
        self._controller_id = _NOBODY
        self._connection = 0
        """The latest connection on which this controller has sent something."""
        self._store = store

    async def refusal_of(self, request: Message, connection: int = 0) -> ErrorCode:
        """Return the error code for the request, or NONE; its controller is then the latest.

        `connection` counts the connections of this broker. A controller uses one at a time: what arrives on
        an earlier one than before is late, the controller has sent it again, and newer requests may have
        followed.

        Raises HangUp for such a request, and if the store does not know the controller yet; a controller then
        retries. Likewise before the registration: a request may be meant for this broker's earlier life, as
        long as the store has not noticed its end, and what it relies on may have been lost with that life.
        """
        if not self.broker_epoch:
            raise HangUp("this broker is not registered yet")
        if request.broker_epoch != self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if request.controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if request.controller_epoch > self.controller_epoch or self._controller_id == _NOBODY:
            await self._look_up(request)
        if (request.controller_epoch, request.controller_id) != (self.controller_epoch, self._controller_id):
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if connection < self._connection:
            raise HangUp(f"a request of controller {request.controller_id} that newer ones have overtaken")
        self._connection = connection
        return ErrorCode.NONE

    async def _look_up(self, request: Message) -> None:
        """Read the controller and its epoch from the store."""
        claimed = f"controller {request.controller_id} of epoch {request.controller_epoch}"
        try:
            controller, epoch = await self._store.get_each([ControllerZNode.PATH, ControllerEpoch.PATH])
            known_epoch = 0 if epoch is None else ControllerEpoch.decode(epoch.data).epoch
            known_id = _NOBODY if controller is None else ControllerZNode.decode(controller.data).broker_id
        except StoreError as error:
            raise HangUp(f"a request of {claimed} cannot be checked: {error}") from error
        if request.controller_epoch > known_epoch:
            raise HangUp(f"a request of {claimed}, but the store knows of epoch {known_epoch}")
        if known_id != _NOBODY:
            if known_epoch > self.controller_epoch:
                self._connection = 0
            self.controller_epoch, self._controller_id = known_epoch, known_id
