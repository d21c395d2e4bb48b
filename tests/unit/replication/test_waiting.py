"""Requests that wait for several partitions: one result each, done when all are settled."""

from __future__ import annotations

from restow.cluster.replication.waiting import OffsetQueue, Pending
from restow.model import TopicPartition
from restow.wire.error_codes import ErrorCode
from tests.unit.replication.replicas import T0, run

T1 = TopicPartition("t", 1)


def test_first_result_of_a_partition_counts() -> None:
    async def scenario() -> None:
        pending = Pending({T0, T1})
        pending.settle(T0, ErrorCode.NONE)
        pending.settle(T0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert not pending.done.done()
        pending.time_out()
        assert pending.codes == {T0: ErrorCode.NONE, T1: ErrorCode.REQUEST_TIMED_OUT}
        assert pending.done.done()
        pending.settle(T1, ErrorCode.NONE)
        assert pending.codes[T1] == ErrorCode.REQUEST_TIMED_OUT

    run(scenario())


def test_reach_settles_requests_up_to_and_including_the_offset() -> None:
    async def scenario() -> None:
        queue = OffsetQueue(T0)
        waiting = {offset: Pending({T0}) for offset in (7, 3, 5)}
        for offset, pending in waiting.items():
            queue.wait(offset, pending)
        queue.reach(2, ErrorCode.NONE)
        assert not any(pending.done.done() for pending in waiting.values())
        queue.reach(5, ErrorCode.NONE)
        assert [waiting[offset].done.done() for offset in (3, 5, 7)] == [True, True, False]
        queue.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        assert waiting[7].codes == {T0: ErrorCode.NOT_LEADER_OR_FOLLOWER}
        assert waiting[5].codes == {T0: ErrorCode.NONE}

    run(scenario())
