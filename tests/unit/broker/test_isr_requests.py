"""Leaders' ISR changes: asked of the controller, and what its answers mean."""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64encode
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast
from uuid import UUID

import pytest

from restow.cluster.broker.isr_requests import ALTER_PARTITION, IsrRequests
from restow.cluster.replication.values import PartitionRefused
from restow.cluster.tasks import Tasks
from restow.model import TopicPartition
from restow.wire.codec import API_VERSIONS
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AlterPartitionResponse, ApiVersionsResponse
from tests.unit.broker.conversations import run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BROKER, BROKER_EPOCH = 1, 77
LEADER_EPOCH = 5
PARTITIONS = [TopicPartition("t", number) for number in range(3)]
TOPIC_ID = UUID(int=1234)
TEXT = urlsafe_b64encode(TOPIC_ID.bytes).decode().rstrip("=")
LATEST = 3


class Controllers:
    """What this broker hears from controllers, and the ISRs that it wrote by itself."""

    def __init__(self) -> None:
        self.offered: dict[int, int | None] = {0: LATEST, 2: LATEST}
        """The latest version by controller, None without AlterPartition."""
        self.asked: list[tuple[int, int, int, Any]] = []
        self.answer: Callable[[Any], Any] = accepted
        """The answer to one partition of a request."""
        self.refusal = ErrorCode.NONE
        """The error of a whole answer."""
        self.held: asyncio.Event | None = None
        """If set, AlterPartition waits for it."""
        self.broken = False
        self.controller_id: int | None = 0
        self.written: list[Any] = []

    async def call(self, controller: int, api_key: int, version: int, body: Any, *, timeout_s: float) -> Any:
        self.asked.append((controller, api_key, version, body))
        if self.broken:
            raise ConnectionError("the controller is away")
        if api_key == API_VERSIONS:
            latest = self.offered[controller]
            entry = ApiVersionsResponse.ApiVersion
            served = [] if latest is None else [entry(api_key=ALTER_PARTITION, max_version=latest)]
            return ApiVersionsResponse(api_keys=[entry(api_key=3, max_version=9), *served])
        if self.held is not None:
            await self.held.wait()
        if self.broken:
            raise ConnectionError("the controller has gone")
        topics = [
            AlterPartitionResponse.TopicData(
                topic_name=topic.topic_name if version < 2 else "",
                topic_id=topic.topic_id if version >= 2 else None,
                partitions=[self.answer(each) for each in topic.partitions],
            )
            for topic in body.topics
        ]
        return AlterPartitionResponse(error_code=self.refusal, topics=[] if self.refusal else topics)

    async def write(self, *change: Any) -> int | None:
        self.written.append(change)
        return 42

    def requests(self) -> list[Any]:
        """Return the AlterPartition requests."""
        return [body for _, key, _, body in self.asked if key == ALTER_PARTITION]


def accepted(state: Any) -> Any:
    return AlterPartitionResponse.TopicData.PartitionData(
        partition_index=state.partition_index,
        leader_id=BROKER,
        leader_epoch=state.leader_epoch,
        isr=[each.broker_id for each in state.new_isr_with_epochs] or state.new_isr,
        partition_epoch=state.partition_epoch + 1,
    )


def refused(code: ErrorCode) -> Callable[[Any], Any]:
    make = AlterPartitionResponse.TopicData.PartitionData
    return lambda state: make(partition_index=state.partition_index, error_code=code, isr=[])


def under(story: Callable[[IsrRequests, Controllers], Awaitable[None]], topic_id: str | None = TEXT) -> None:
    """Run the story of a broker whose controller is 0."""

    async def tell() -> None:
        controllers, tasks = Controllers(), Tasks()
        requests = IsrRequests(
            BROKER,
            cast("Any", SimpleNamespace(broker_epoch=BROKER_EPOCH)),
            cast("Any", controllers),
            cast("Any", controllers),
            cast("Any", SimpleNamespace(topic_id_of=lambda _: topic_id)),
            controllers,
            tasks,
        )
        await story(requests, controllers)
        await tasks.close()

    run(tell())


def shrink(requests: IsrRequests, partition: TopicPartition = PARTITIONS[0]) -> asyncio.Task[int | None]:
    return asyncio.ensure_future(requests.write(partition, BROKER, LEADER_EPOCH, (1, 2), 8))


def test_controller_is_asked_in_its_latest_version_and_the_new_version_returned() -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        assert await shrink(requests) == 9
        (_, key, version, body) = controllers.asked[-1]
        assert (key, version) == (ALTER_PARTITION, LATEST)
        assert (body.broker_id, body.broker_epoch) == (BROKER, BROKER_EPOCH)
        ((topic,), (state,)) = body.topics, body.topics[0].partitions
        assert topic.topic_id == TOPIC_ID
        assert (state.partition_index, state.leader_epoch, state.partition_epoch) == (0, LEADER_EPOCH, 8)
        assert [(each.broker_id, each.broker_epoch) for each in state.new_isr_with_epochs] == [
            (1, -1),
            (2, -1),
        ]
        assert controllers.written == []
        await shrink(requests)
        assert [key for _, key, *_ in controllers.asked] == [API_VERSIONS, ALTER_PARTITION, ALTER_PARTITION]

    under(story)


@pytest.mark.parametrize(
    ("latest", "topic_id", "used"), [(2, TEXT, 2), (1, TEXT, 1), (3, None, 1), (0, TEXT, 0)]
)
def test_older_versions_are_used_where_they_are_all_that_is_possible(
    latest: int, topic_id: str | None, used: int
) -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.offered[0] = latest
        assert await shrink(requests) == 9
        (_, _, version, body) = controllers.asked[-1]
        assert version == used
        assert body.topics[0].partitions[0].new_isr == [1, 2]

    under(story, topic_id)


def test_leader_writes_by_itself_under_a_controller_that_cannot_be_asked() -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.offered[0] = None
        assert await shrink(requests) == 42
        assert controllers.written == [(PARTITIONS[0], BROKER, LEADER_EPOCH, (1, 2), 8)]
        assert controllers.requests() == []

    under(story)


def test_proposals_made_during_a_request_share_the_next_one() -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.held = asyncio.Event()
        first = shrink(requests)
        while not controllers.requests():
            await asyncio.sleep(0)
        others = [shrink(requests, each) for each in PARTITIONS[1:]]
        await asyncio.sleep(0.01)
        assert len(controllers.requests()) == 1
        controllers.held.set()
        assert [await each for each in (first, *others)] == [9, 9, 9]
        _, second = controllers.requests()
        assert [each.partition_index for each in second.topics[0].partitions] == [1, 2]

    under(story)


@pytest.mark.parametrize("code", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_refused_replica_ends_the_proposal(code: ErrorCode) -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.answer = refused(code)
        with pytest.raises(PartitionRefused) as caught:
            await shrink(requests)
        assert caught.value.code is code

    under(story)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.NEW_LEADER_ELECTED,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_other_refusals_leave_it_open_what_is_in_force(code: ErrorCode) -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.answer = refused(code)
        assert await shrink(requests) is None

    under(story)


@pytest.mark.parametrize(
    "other",
    [{"leader_epoch": LEADER_EPOCH + 1}, {"leader_id": 2}, {"isr": [1]}, {"partition_epoch": 7}],
    ids=lambda other: next(iter(other)),
)
def test_answer_about_another_state_is_not_taken_for_the_proposal(other: dict[str, Any]) -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        def answer(state: Any) -> Any:
            it = accepted(state)
            for name, value in other.items():
                setattr(it, name, value)
            return it

        controllers.answer = answer
        assert await shrink(requests) is None

    under(story)


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH])
def test_refusal_of_a_whole_request_leaves_the_outcome_unknown(code: ErrorCode) -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.refusal = code
        with pytest.raises(ConnectionError, match=code.name):
            await shrink(requests)
        controllers.refusal = ErrorCode.NONE
        assert await shrink(requests) == 9

    under(story)


def test_new_controller_is_asked_after_the_old_one_was_lost_in_mid_request() -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.held = asyncio.Event()
        asking = shrink(requests)
        while not controllers.requests():
            await asyncio.sleep(0)
        controllers.controller_id, controllers.broken = 2, True
        controllers.held.set()
        with pytest.raises(ConnectionError):
            await asking
        controllers.broken = False
        assert await shrink(requests) == 9
        assert controllers.asked[-1][0] == 2
        assert controllers.written == []

    under(story)


def test_leader_writes_by_itself_while_the_controller_cannot_be_reached() -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.broken = True
        assert await shrink(requests) == 42
        controllers.broken = False
        assert await shrink(requests) == 9
        assert len(controllers.written) == 1

    under(story)


def test_controller_that_came_back_is_asked_for_its_versions_anew() -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        assert await shrink(requests) == 9
        controllers.broken = True
        assert await shrink(requests) == 42
        controllers.broken, controllers.offered[0] = False, 1
        assert await shrink(requests) == 9
        assert controllers.asked[-1][2] == 1

    under(story)


def test_nobody_is_asked_while_there_is_no_controller() -> None:
    async def story(requests: IsrRequests, controllers: Controllers) -> None:
        controllers.controller_id = None
        with pytest.raises(ConnectionError, match="no controller"):
            await shrink(requests)
        assert controllers.asked == []

    under(story)
