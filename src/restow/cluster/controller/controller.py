"""A broker's part in the controller election: being elected, serving, resigning.

The broker that creates `/controller` is elected; the same transaction raises `/controller_epoch`. The others
watch the znode and try again when it is gone. A Term does all the work of an elected controller. Any failure
ends the term, and the next controller, on this broker or another, reads everything again.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, TypeVar

from restow.cluster.controller.context import ControllerContext
from restow.cluster.controller.errors import ControllerError, Deposed, NotController
from restow.cluster.controller.events import EventQueue
from restow.cluster.controller.steps import ControllerStep, go_on
from restow.cluster.controller.term import Term
from restow.cluster.controller.tools import ControllerConfig
from restow.cluster.store import (
    BadVersion,
    CheckVersion,
    Create,
    Delete,
    NodeExists,
    NoNode,
    SessionExpired,
    Set,
    StoreError,
    UnreadableNode,
    ensure_paths,
)
from restow.cluster.store.znodes import PERSISTENT_PATHS, ControllerEpoch, ControllerZNode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from restow.cluster.controller.context import Leadership
    from restow.cluster.controller.elections import Election
    from restow.cluster.controller.events import Work
    from restow.cluster.controller.isr_changes import IsrChange, IsrChangeKey
    from restow.cluster.controller.outbox import BrokerChannel
    from restow.cluster.controller.reassignment.rules import ReassignmentTarget, Refusal
    from restow.cluster.controller.steps import Hook
    from restow.cluster.store import Store, StoreNode, WatchEvent
    from restow.model import ReplicaAssignment, TopicPartition
    from restow.runtime.clock import Clock
    from restow.wire.error_codes import ErrorCode

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Controller:
    """One per broker and session. When the session expires, make another on a new session."""

    def __init__(
        self,
        broker_id: int,
        store: Store,
        clock: Clock,
        channel: BrokerChannel,
        config: ControllerConfig | None = None,
        *,
        new_topic_id: Callable[[], str],
        at: Hook = go_on,
    ) -> None:
        self._broker_id = broker_id
        self._store = store
        self._clock = clock
        self._channel = channel
        self._config = config or ControllerConfig()
        self.at = at
        """Called at every step, so that tests can stop a controller or a broker there."""
        self._new_topic_id = new_topic_id
        self._events = EventQueue(self._failed)
        self._term: Term | None = None
        self._ready = False
        self.controller_id: int | None = None
        """Id of the controller, as far as this broker knows."""

    async def start(self) -> None:
        """Become controller, or watch the current one. Returns after the first attempt."""
        await ensure_paths(self._store, PERSISTENT_PATHS)
        self._store.on_expired(self._end_term)
        self._events.start(f"controller of broker {self._broker_id}")
        self._events.put("start", self._controller_changed)
        await self._events.ask("started", self._current)

    async def stop(self) -> None:
        """Resign, if elected, so that the next controller need not wait for the session to expire."""
        await self._events.stop(NotController(f"broker {self._broker_id} stops"))
        await self._resign()

    @property
    def is_active(self) -> bool:
        """Return whether this broker is controller and has read the whole store."""
        return self._term is not None and self._ready

    @property
    def epoch(self) -> int:
        """Epoch of this controller's term; -1 if it is not the controller."""
        return -1 if self._term is None else self._term.context.epoch

    def is_deleting(self, topic: str) -> bool:
        """Return whether the topic is queued for deletion. Only an elected controller knows."""
        return self._term is not None and topic in self._term.context.deleting

    async def handle_controlled_shutdown(self, broker_id: int, epoch: int) -> tuple[TopicPartition, ...]:
        """Move leaders off a broker and return the partitions it still leads. `epoch` is its broker epoch."""
        name = f"shutdown of broker {broker_id}"
        return await self._ask(name, lambda term: term.shutdown.leave(broker_id, epoch))

    async def alter_isrs(
        self, broker_id: int, broker_epoch: int, changes: Mapping[IsrChangeKey, IsrChange]
    ) -> dict[IsrChangeKey, Leadership | ErrorCode]:
        """Carry out ISR changes of a leader. Return each partition's state now, or why it stays as it was."""
        name = f"ISR changes of broker {broker_id}"
        return await self._ask(name, lambda term: term.isr_changes.alter(broker_id, broker_epoch, changes))

    async def require_registered(self, broker_id: int, epoch: int, *, unknown: ErrorCode) -> None:
        """Raise ControllerError unless the broker is registered with that epoch, `unknown` if not at all."""

        async def check(term: Term) -> None:
            term.context.require_registered(broker_id, epoch, unknown=unknown)

        await self._ask(f"epoch of broker {broker_id}", check)

    async def elect_leaders(
        self, election: Election, partitions: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, ErrorCode]:
        """Hold a PREFERRED or UNCLEAN election. None means all partitions that need one."""
        name = f"{election.value} election"
        return await self._ask(name, lambda term: term.leaders.elect(election, partitions))

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, ReassignmentTarget]
    ) -> dict[TopicPartition, Refusal | None]:
        """Start, replace or cancel reassignments. Return None per accepted partition, or the refusal."""
        name = f"moves of {len(targets)} partitions"
        return await self._ask(name, lambda term: term.reassignment.alter(targets))

    async def list_reassignments(
        self, partitions: Iterable[TopicPartition] | None
    ) -> Mapping[TopicPartition, ReplicaAssignment]:
        """Return the ongoing reassignments of these partitions, or all of them for None."""

        async def running(term: Term) -> Mapping[TopicPartition, ReplicaAssignment]:
            return term.reassignment.running(partitions)

        return await self._ask("list of moves", running)

    async def elect_missing_leaders(self) -> None:
        """Retry the election of leaderless partitions, because a config change may now allow one."""
        await self._ask("missing leaders", lambda term: term.partitions.elect_missing())

    # Being elected

    async def _controller_changed(self) -> None:
        """Read who is controller, and try to be elected if there is none."""
        await self._store.watch_data(ControllerZNode.PATH, self._controller_fired)
        node = await self._current()
        if self._term is not None and (node is None or node.stat.ephemeral_owner != self._store.session_id):
            _log.info("broker %d is no longer controller", self._broker_id)
            self._end_term()
        if node is None:
            await self._elect()
        elif self._term is None and node.stat.ephemeral_owner == self._store.session_id:
            await self._store.delete(ControllerZNode.PATH)

    def _controller_fired(self, _: WatchEvent) -> None:
        self._events.put("controller changed", self._controller_changed)

    async def _current(self) -> StoreNode | None:
        try:
            node = await self._store.get(ControllerZNode.PATH)
        except NoNode:
            self.controller_id = None
            return None
        try:
            self.controller_id = ControllerZNode.decode(node.data).broker_id
        except UnreadableNode as error:
            _log.error("%s", error)
            self.controller_id = None
        return node

    async def _elect(self) -> None:
        with contextlib.suppress(NodeExists):
            await self._store.create(ControllerEpoch.PATH, ControllerEpoch(0).encode())
        node = await self._store.get(ControllerEpoch.PATH)
        epoch = ControllerEpoch.decode(node.data).epoch + 1
        candidate = ControllerZNode(broker_id=self._broker_id, timestamp_ms=self._clock.now_ms())
        try:
            await self._store.multi(
                [
                    Create(ControllerZNode.PATH, candidate.encode(), ephemeral=True),
                    Set(ControllerEpoch.PATH, ControllerEpoch(epoch).encode(), node.stat.version),
                ]
            )
        except (NodeExists, BadVersion):
            _log.debug("broker %d lost the controller election", self._broker_id)
            await self._current()
            return
        self.controller_id = self._broker_id
        _log.info("broker %d is controller, epoch %d", self._broker_id, epoch)
        await self._take_office(epoch, node.stat.version + 1)

    async def _take_office(self, epoch: int, epoch_version: int) -> None:
        term: Term

        def enqueue(name: str, work: Work) -> None:
            async def in_this_term() -> None:
                if self._term is term:
                    await work()

            self._events.put(name, in_this_term)

        term = Term(
            ControllerContext(self._broker_id, epoch),
            epoch_version,
            store=self._store,
            clock=self._clock,
            channel=self._channel,
            config=self._config,
            at=self._pass,
            new_topic_id=self._new_topic_id,
            enqueue=enqueue,
        )
        self._term = term
        self._epoch_version = epoch_version
        await self.at(ControllerStep.E1)
        await term.begin()
        self._ready = True

    async def _pass(self, step: ControllerStep) -> None:
        await self.at(step)

    # Resigning

    def _end_term(self) -> None:
        if self._term is not None:
            self._term.end()
        self._term = None
        self._ready = False

    async def _resign(self) -> None:
        """End the term and delete `/controller`, so that another broker can be elected."""
        if self._term is None:
            return
        self._end_term()
        try:
            await self._store.multi(
                [CheckVersion(ControllerEpoch.PATH, self._epoch_version), Delete(ControllerZNode.PATH)]
            )
        except StoreError as error:
            _log.info("broker %d resigned after another was elected: %s", self._broker_id, error)

    async def _failed(self, event: str, error: Exception) -> None:
        """End the term after a failed event, unless only that one request failed."""
        if isinstance(error, SessionExpired):
            self._end_term()
        elif isinstance(error, Deposed):
            _log.info("broker %d was deposed at %s", self._broker_id, event)
            self._end_term()
            self._events.put("look again", self._controller_changed)
        elif not isinstance(error, ControllerError):
            _log.error("broker %d resigns as controller: %s failed", self._broker_id, event, exc_info=error)
            await self._resign()
            await self._clock.sleep(self._config.retry_backoff_s)
            self._events.put("start again", self._controller_changed)

    # Requests

    def _in_office(self) -> Term:
        if self._term is None or not self._ready:
            raise NotController(f"broker {self._broker_id} is not the controller")
        return self._term

    async def _ask(self, name: str, work: Callable[[Term], Awaitable[T]]) -> T:
        """Queue the work and return its result. Raises NotController without a term, now or in its turn."""

        async def in_office() -> T:
            return await work(self._in_office())

        self._in_office()
        return await self._events.ask(name, in_office)
