"""ISR changes of this broker's leaders: asked of the controller (AlterPartition), or written by themselves.

The controller is asked if its ApiVersions offer AlterPartition, as Apache's do since 2.7. Otherwise the
leader writes the state itself, as Kafka did before; and also if the controller cannot be reached, because a
leader that keeps a dead follower in its ISR acknowledges nothing. The store takes either write only in the
version that the writer knows. One request is under way at a time; what leaders propose meanwhile shares the
next one.

    answer                                       what the leader does
    NONE                                         adopts the ISR
    INELIGIBLE_REPLICA, OPERATION_NOT_ATTEMPTED  drops the proposal, and considers another one later
    any other, or none                           asks again; until then the old and the new ISR count

Stale epochs are among the others: another state is in force, and the controller will send it to the leader,
which drops the proposal then.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import urlsafe_b64decode
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from uuid import UUID

from restow.cluster.replication.values import PartitionRefused
from restow.errors import RestowError
from restow.model import TopicPartition
from restow.wire.codec import API_VERSIONS
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AlterPartitionRequest, ApiVersionsRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.cluster.broker.controller_requests import ControllerRequests
    from restow.cluster.controller import Controller
    from restow.cluster.log import LogManager
    from restow.cluster.net.peers import Peers
    from restow.cluster.replication.values import IsrWriter
    from restow.cluster.tasks import Tasks
    from restow.wire.messages import Message

log = logging.getLogger(__name__)

ALTER_PARTITION = AlterPartitionRequest.API_KEY
_TOPIC = AlterPartitionRequest.TopicData
_PARTITION = _TOPIC.PartitionData
_LAST_WITH_NAMES = 1
_LAST = 3
_ANSWER_S = 10.0
_SURELY_UNCHANGED = (ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED)


class _Proposal(NamedTuple):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int
    topic_id: UUID | None
    answer: asyncio.Future[int | None]


_Proposals: TypeAlias = "Mapping[TopicPartition, _Proposal]"


class IsrRequests:
    """An `IsrWriter` that asks the controller where it can."""

    def __init__(
        self,
        broker_id: int,
        requests: ControllerRequests,
        peers: Peers,
        controller: Controller,
        logs: LogManager,
        directly: IsrWriter,
        tasks: Tasks,
    ) -> None:
        """`requests` knows this broker's epoch, `controller` who is controller; `directly` writes where that
        one cannot be asked.
        """
        self._broker_id = broker_id
        self._requests = requests
        self._peers = peers
        self._controller = controller
        self._logs = logs
        self._directly = directly
        self._tasks = tasks
        self._waiting: dict[TopicPartition, _Proposal] = {}
        self._is_asking = False
        self._offered: dict[int, int | None] = {}
        """The latest version that a controller offers, None without AlterPartition."""

    async def write(
        self,
        topic_partition: TopicPartition,
        leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        expected_znode_version: int,
    ) -> int | None:
        """Return the new version, or None for as long as another state is in force."""
        text = self._logs.topic_id_of(topic_partition)
        topic_id = None if text is None else UUID(bytes=urlsafe_b64decode(f"{text}=="))
        answer: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        replaced = self._waiting.get(topic_partition)
        if replaced is not None and not replaced.answer.done():
            replaced.answer.set_result(None)
        self._waiting[topic_partition] = _Proposal(
            leader, leader_epoch, isr, expected_znode_version, topic_id, answer
        )
        if not self._is_asking:
            self._is_asking = True
            self._tasks.start(self._ask_on_and_on(), "ISR requests")
        return await answer

    async def _ask_on_and_on(self) -> None:
        try:
            while self._waiting:
                proposals, self._waiting = self._waiting, {}
                try:
                    await self._ask(proposals)
                except (RestowError, OSError) as error:
                    for each in proposals.values():
                        if not each.answer.done():
                            each.answer.set_exception(error)
        finally:
            self._is_asking = False

    async def _ask(self, proposals: _Proposals) -> None:
        """Answer the proposals. Raises ConnectionError or TimeoutError if the outcome is unknown."""
        controller = self._controller.controller_id
        if controller is None:
            raise ConnectionError("there is no controller")
        try:
            version = await self._version_of(controller)
            if version is not None:
                if version > _LAST_WITH_NAMES and any(each.topic_id is None for each in proposals.values()):
                    version = _LAST_WITH_NAMES
                request = _request(self._broker_id, self._requests.broker_epoch, proposals, version)
                response = await self._call(controller, ALTER_PARTITION, version, request)
        except OSError as error:
            self._offered.pop(controller, None)
            if controller != self._controller.controller_id:
                raise
            log.info("controller %d cannot be asked for ISR changes: %s", controller, error)
            version = None
        if version is None:
            await self._write_directly(proposals)
            return
        if response.error_code:
            code = ErrorCode.of(response.error_code)
            raise ConnectionError(f"controller {controller} refused with {code.name}: {code.message}")
        _settle(proposals, response, version)

    async def _version_of(self, controller: int) -> int | None:
        if controller not in self._offered:
            response = await self._call(controller, API_VERSIONS, 0, ApiVersionsRequest())
            self._offered = {controller: None}
            for each in response.api_keys:
                if each.api_key == ALTER_PARTITION:
                    self._offered[controller] = min(_LAST, each.max_version)
        return self._offered[controller]

    async def _call(self, controller: int, api_key: int, version: int, body: Message) -> Message:
        return await self._peers.call(controller, api_key, version, body, timeout_s=_ANSWER_S)

    async def _write_directly(self, proposals: _Proposals) -> None:
        outcomes = await asyncio.gather(
            *(
                self._directly.write(partition, it.leader, it.leader_epoch, it.isr, it.partition_epoch)
                for partition, it in proposals.items()
            ),
            return_exceptions=True,
        )
        for proposal, outcome in zip(proposals.values(), outcomes, strict=True):
            if proposal.answer.done():
                continue
            if isinstance(outcome, BaseException):
                proposal.answer.set_exception(outcome)
            else:
                proposal.answer.set_result(outcome)


def _request(broker_id: int, broker_epoch: int, proposals: _Proposals, version: int) -> Message:
    """Return the request. Brokers of the ISR have no epochs: a cluster with ZooKeeper sends -1."""
    topics: defaultdict[tuple[str, UUID | None], list[TopicPartition]] = defaultdict(list)
    for partition, proposal in proposals.items():
        topics[partition.topic, proposal.topic_id].append(partition)
    return AlterPartitionRequest(
        broker_id=broker_id,
        broker_epoch=broker_epoch,
        topics=[
            _TOPIC(
                topic_name=topic,
                topic_id=topic_id,
                partitions=[_wanted(each, proposals[each], version) for each in partitions],
            )
            for (topic, topic_id), partitions in topics.items()
        ],
    )


def _wanted(partition: TopicPartition, proposal: _Proposal, version: int) -> Message:
    wanted = _PARTITION(
        partition_index=partition.partition,
        leader_epoch=proposal.leader_epoch,
        partition_epoch=proposal.partition_epoch,
    )
    if version < _LAST:
        wanted.new_isr = list(proposal.isr)
    else:
        wanted.new_isr_with_epochs = [_PARTITION.BrokerState(broker_id=each) for each in proposal.isr]
    return wanted


def _settle(proposals: _Proposals, response: Message, version: int) -> None:
    """Hand each leader its answer; one without an answer asks again."""
    names = {each.topic_id: partition.topic for partition, each in proposals.items()}
    found: dict[TopicPartition, Message] = {}
    for topic in response.topics:
        name = topic.topic_name if version <= _LAST_WITH_NAMES else names.get(topic.topic_id)
        if name is not None:
            found |= {TopicPartition(name, each.partition_index): each for each in topic.partitions}
    for partition, proposal in proposals.items():
        if not proposal.answer.done():
            _answer(partition, proposal, found.get(partition))


def _answer(partition: TopicPartition, proposal: _Proposal, found: Message | None) -> None:
    if found is None:
        proposal.answer.set_result(None)
        return
    code = ErrorCode.of(found.error_code)
    if code in _SURELY_UNCHANGED:
        proposal.answer.set_exception(PartitionRefused(code))
        return
    if code:
        log.info("the controller leaves the ISR of %s as it is: %s", partition, code.name)
    is_in_force = (
        not code
        and (found.leader_id, found.leader_epoch) == (proposal.leader, proposal.leader_epoch)
        and set(found.isr) == set(proposal.isr)
        and found.partition_epoch >= proposal.partition_epoch
    )
    proposal.answer.set_result(found.partition_epoch if is_in_force else None)
