"""ISR changes: a leader writes the state and leaves a note; the controller informs the other brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.controller.batch import BrokerRequestBatch
from restow.cluster.controller.notifications import read_notifications, remove_notifications
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.store.znodes import IsrChangeNotification

if TYPE_CHECKING:
    from restow.cluster.controller.tools import Tools


class IsrNotifications:
    """Reads the ISR changes that leaders wrote."""

    def __init__(self, tools: Tools) -> None:
        self._tools = tools

    async def changed(self) -> None:
        """Read every partition that a note names and send its state to all brokers."""
        context = self._tools.context
        notes, paths = await read_notifications(self._tools.store, IsrChangeNotification)
        named = dict.fromkeys(partition for note in notes for partition in note.partitions)
        found = await self._tools.nodes.read([each for each in named if each in context.assignments])
        context.leaderships.update(found)
        if found:
            batch = BrokerRequestBatch(context, self._tools.outbox)
            batch.update_metadata(found)
            batch.send()
        await self._tools.at(ControllerStep.N1)
        await remove_notifications(self._tools.store, paths)

    async def forget(self) -> None:
        """Remove the notes unread. A new controller reads every state anyway."""
        _, paths = await read_notifications(self._tools.store, IsrChangeNotification)
        await remove_notifications(self._tools.store, paths)
