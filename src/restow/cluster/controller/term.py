"""One broker's term as controller, from its election to its end.

A term starts by reading the whole store and taking up unfinished work. After that, only events change
anything. Nothing outlives the term: the next one starts with an empty context.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from restow.cluster.controller.brokers import Brokers, read_brokers
from restow.cluster.controller.context import ControllerContext, Replica
from restow.cluster.controller.creation import Topics
from restow.cluster.controller.deletion import Deletion
from restow.cluster.controller.features import enable_features
from restow.cluster.controller.guarded import GuardedStore
from restow.cluster.controller.isr_changes import IsrChanges
from restow.cluster.controller.leaders import Leaders
from restow.cluster.controller.listeners import Listeners, Subject
from restow.cluster.controller.notifications import forget_notifications, isr_changed
from restow.cluster.controller.outbox import Outbox
from restow.cluster.controller.reassignment.reassignment import Reassignment
from restow.cluster.controller.shutdown import ControlledShutdown
from restow.cluster.controller.state_nodes import StateNodes
from restow.cluster.controller.steps import ControllerStep
from restow.cluster.controller.tools import ControllerConfig, Tools
from restow.cluster.store.znodes import IsrChangeNotification, LogDirEvent
from restow.model import TopicPartition
from restow.wire.between_brokers import LeaderAndIsrRequest, StopReplicaRequest
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.cluster.controller.events import Work
    from restow.cluster.controller.outbox import BrokerChannel, Message
    from restow.cluster.controller.steps import Hook
    from restow.cluster.store import Store
    from restow.runtime.clock import Clock, Timer

_log = logging.getLogger(__name__)


class Term:
    """All parts of a controller, bound to one controller epoch."""

    def __init__(
        self,
        context: ControllerContext,
        epoch_version: int,
        *,
        store: Store,
        clock: Clock,
        channel: BrokerChannel,
        config: ControllerConfig,
        at: Hook,
        new_topic_id: Callable[[], str],
        enqueue: Callable[[str, Work], object],
    ) -> None:
        guarded = GuardedStore(store, epoch_version)
        outbox = Outbox(
            channel, clock, backoff_s=config.retry_backoff_s, answered=self._answered, broken=self._broken
        )
        tools = Tools(
            context=context,
            store=guarded,
            nodes=StateNodes(guarded, context.epoch),
            outbox=outbox,
            config=config,
            at=at,
            new_topic_id=new_topic_id,
        )
        self.context = context
        self._tools = tools
        self._clock = clock
        self._enqueue = enqueue
        self.partitions = tools.partitions
        self._deletion = Deletion(tools)
        self.reassignment = Reassignment(tools, self._deletion, enqueue)
        self._topics = Topics(tools, self._deletion, self.reassignment)
        self._brokers = Brokers(tools, self._deletion, self.reassignment)
        self.leaders = Leaders(tools)
        self.shutdown = ControlledShutdown(tools)
        self.isr_changes = IsrChanges(tools)
        self._rebalance: Timer | None = None
        self._listeners = Listeners(
            store,
            enqueue,
            {
                Subject.REASSIGNMENTS: self.reassignment.requested,
                Subject.BROKERS: self._brokers.changed,
                Subject.TOPICS: self._topics_changed,
                Subject.DELETIONS: self._deletion.requested,
                Subject.ISR_CHANGES: partial(isr_changed, tools),
                Subject.LOG_DIRS: self._brokers.log_dirs_changed,
                Subject.PREFERRED_ELECTION: self.leaders.requested,
            },
            self._topics.grown,
            self._topics.removed,
        )

    async def begin(self) -> None:
        """Read the store, inform the brokers, and continue unfinished work."""
        at = self._tools.at
        await enable_features(self._tools.store)
        await self._listeners.set_all()
        await at(ControllerStep.E2)
        await forget_notifications(self._tools.store, IsrChangeNotification)
        await forget_notifications(self._tools.store, LogDirEvent)
        self._brokers.start(await read_brokers(self._tools))
        await self._topics.start(self._listeners)
        await self._deletion.start()
        await at(ControllerStep.E3)
        self._tools.batch().send_everything(self.context.brokers)
        await self._tools.replicas.start()
        await at(ControllerStep.E4)
        await self.partitions.start()
        await at(ControllerStep.E5)
        await self.reassignment.start()
        await self._deletion.resume()
        await self.leaders.requested()
        self._plan_rebalance()

    def end(self) -> None:
        """Stop sending. The caller drops the watches."""
        self._tools.outbox.close_all()
        if self._rebalance is not None:
            self._rebalance.cancel()

    async def _topics_changed(self) -> None:
        await self._topics.changed(self._listeners)

    def _plan_rebalance(self) -> None:
        if not self._tools.config.auto_leader_rebalance:
            return

        async def rebalance() -> None:
            await self.leaders.balance()
            self._plan_rebalance()

        self._rebalance = self._clock.call_later(
            self._tools.config.rebalance_interval_s, partial(self._enqueue, "rebalance", rebalance)
        )

    # Responses of brokers

    def _broken(self, error: BaseException) -> None:
        async def give_up() -> None:
            raise error

        self._enqueue("sending to brokers", give_up)

    def _answered(self, broker_id: int, request: Message, response: Message) -> None:
        if response.error_code != ErrorCode.NONE:
            error = ErrorCode.of(response.error_code)
            _log.warning("broker %d refuses %s: %s", broker_id, type(request).__name__, error.message)
        elif isinstance(request, LeaderAndIsrRequest):
            self._answered_leader_and_isr(broker_id, request, response)
        elif isinstance(request, StopReplicaRequest):
            self._answered_stop_replica(broker_id, request, response)

    def _take_up(self, name: str, work: Work, broker_id: int, request: Message) -> None:
        """Handle a response, unless the broker has registered again by then."""

        async def in_the_same_life() -> None:
            broker = self.context.brokers.get(broker_id)
            if broker is not None and broker.epoch == request.broker_epoch:
                await work()

        self._enqueue(name, in_the_same_life)

    def _answered_leader_and_isr(self, broker_id: int, request: Message, response: Message) -> None:
        failed = []
        served = []
        for partition, code in _partition_errors(request, response):
            if code == ErrorCode.KAFKA_STORAGE_ERROR:
                failed.append(partition)
            elif code == ErrorCode.NONE:
                served.append(partition)
            elif code == ErrorCode.STALE_CONTROLLER_EPOCH:
                # Of one partition, Kafka's brokers say so if its leader epoch is not new to them.
                _log.info("broker %d has that leader epoch of %s, or a later one", broker_id, partition)
            else:
                _log.warning("broker %d on %s: %s", broker_id, partition, ErrorCode.of(code).message)
        if failed or not self.context.failed.get(broker_id, set()).isdisjoint(served):
            self._take_up(
                f"log directories of broker {broker_id}",
                partial(self._brokers.directories, broker_id, failed, served),
                broker_id,
                request,
            )

    def _answered_stop_replica(self, broker_id: int, request: Message, response: Message) -> None:
        errors = {
            TopicPartition(each.topic_name, each.partition_index): each.error_code
            for each in response.partition_errors
        }
        deleted = [
            TopicPartition(topic.topic_name, state.partition_index)
            for topic in request.topic_states
            for state in topic.partition_states
            if state.delete_partition
        ]
        if not deleted:
            return
        done = [Replica(each, broker_id) for each in deleted if not errors.get(each)]
        not_done = [Replica(each, broker_id) for each in deleted if errors.get(each)]

        async def go_on() -> None:
            if not_done:
                _log.warning("broker %d could not delete %d replicas", broker_id, len(not_done))
                await self._deletion.failed(not_done)
            await self._deletion.succeeded(done)

        self._take_up(f"replicas deleted on broker {broker_id}", go_on, broker_id, request)


def _partition_errors(request: Message, response: Message) -> Iterator[tuple[TopicPartition, int]]:
    """Return each partition's error code. Newer versions name topics by id, older ones by name."""
    names = {each.topic_id: each.topic_name for each in request.topic_states}
    for topic in response.topics or ():
        if topic.topic_id not in names:
            continue
        for each in topic.partition_errors:
            yield TopicPartition(names[topic.topic_id], each.partition_index), each.error_code
    for each in response.partition_errors or ():
        yield TopicPartition(each.topic_name, each.partition_index), each.error_code
