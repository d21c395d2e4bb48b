"""The controller's orders to this broker: one after the other, and none of a controller that was replaced."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.wire.messages import Message

_ANY_EPOCH = -1


class Orders:
    """Which controller was heard last. Whoever carries out an order holds `turn` meanwhile."""

    def __init__(self) -> None:
        self.controller_epoch = 0
        self.broker_epoch = 0
        """Of this life of the broker: the transaction that registered it."""
        self.turn = asyncio.Lock()

    def refusal_of(self, request: Message) -> ErrorCode:
        """NONE, and then it counts as the latest; or why it must not be carried out."""
        if _ANY_EPOCH < request.broker_epoch < self.broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if request.controller_epoch < self.controller_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        self.controller_epoch = request.controller_epoch
        return ErrorCode.NONE
