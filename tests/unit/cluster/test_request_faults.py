"""Faults that requests meet, on a cluster on the test's own loop."""

from __future__ import annotations

import asyncio

import pytest

from restow.cluster import EmbeddedCluster, ErrorCode
from restow.cluster.handlers import HANDLERS
from restow.errors import InvalidBrokers, InvalidInput
from tests.unit.cluster.fault_stage import WAIT_S, ask_metadata, produce, run, staged

REFUSED = ErrorCode.NOT_ENOUGH_REPLICAS


def test_error_is_given_so_many_times_and_nothing_is_written() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            with stage.faults.error("Produce", REFUSED, times=2) as fault:
                assert [await produce(link) for _ in range(3)] == [REFUSED, REFUSED, 0]
                assert fault.hits == 2
                assert not fault.is_over
            assert fault.is_over
            assert await stage.end_offset() == 1

    run(scenario())


def test_error_meets_only_the_client_the_broker_and_the_topic_it_is_for() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            stranger, tester = await stage.client(client_id="stranger"), await stage.client()
            with stage.faults.error("Produce", REFUSED, client_id="tester"):
                assert (await produce(stranger), await produce(tester)) == (0, REFUSED)
            with stage.faults.error("Produce", REFUSED, broker=1):
                assert await produce(tester) == 0
            with stage.faults.error("Produce", REFUSED, topic="other"):
                assert await produce(tester) == 0
            with stage.faults.error("Produce", REFUSED, broker=(0, 1), topic="t"):
                assert await produce(tester) == REFUSED

    run(scenario())


def test_requests_between_brokers_meet_only_faults_for_their_client_id() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            with stage.faults.error("Fetch", REFUSED) as fault:
                assert await produce(link) == 0, "the followers have fetched it"
                assert fault.hits == 0
            async with stage.faults.drop("Fetch", client_id="broker-1-fetch") as fault:
                await fault.until(1)

    run(scenario())


def test_first_fault_acts_first() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            first = stage.faults.error("Produce", REFUSED, times=1)
            second = stage.faults.error("Produce", ErrorCode.CORRUPT_MESSAGE, times=1)
            codes = [await produce(link) for _ in range(3)]
            assert codes == [REFUSED, ErrorCode.CORRUPT_MESSAGE, 0]
            assert (first.hits, second.hits) == (1, 1)

    run(scenario())


@pytest.mark.parametrize("handled", [False, True])
def test_disconnect_comes_before_or_after_the_request_is_handled(handled: bool) -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            with stage.faults.disconnect("Produce", handled=handled), pytest.raises(ConnectionError):
                await produce(link)
            assert await stage.end_offset() == int(handled)

    run(scenario())


@pytest.mark.parametrize("handled", [False, True])
def test_dropped_answer_leaves_the_connection_open_until_the_fault_ends(handled: bool) -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            fault = stage.faults.drop("Produce", handled=handled, times=1)
            writing = asyncio.ensure_future(produce(link))
            await fault.until(1)
            other = await stage.client(client_id="other")
            assert await produce(other) == 0, "another connection is not concerned"
            assert link.is_open
            assert not writing.done()
            fault.end()
            with pytest.raises(ConnectionError):
                await writing
            assert await stage.end_offset() == 1 + int(handled)

    run(scenario())


def test_delayed_answer_comes_late_or_when_the_fault_ends() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            with stage.faults.delay("Produce", by_s=0.05) as fault:
                assert await produce(link) == 0
            fault = stage.faults.delay("Produce", by_s=10 * WAIT_S)
            writing = asyncio.ensure_future(produce(link))
            await fault.until(1)
            while await stage.end_offset() < 2:
                await asyncio.sleep(0.02)
            assert not writing.done(), "it is written and not answered"
            fault.end()
            assert await writing == 0

    run(scenario())


def test_fault_ends_after_its_time() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            fault = stage.faults.error("Produce", REFUSED, for_s=0.05)
            await fault.ended()
            assert await produce(link) == 0
            assert stage.faults.active == ()

    run(scenario())


def test_nothing_of_a_fault_stays_behind() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            faults = stage.faults
            link = await stage.client()
            faults.error("Produce", REFUSED)
            faults.delay(3, by_s=1)
            faults.cut_clients(answers=False)
            await faults.end()
            assert await produce(link) == 0
            assert (await ask_metadata(link)).brokers
            assert all(table.handlers == HANDLERS for table in faults._tables.values())
            assert faults.active == ()

    run(scenario())


def test_fault_that_is_used_up_leaves_the_broker_its_own_handlers() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            fault = stage.faults.error("Produce", REFUSED, times=1)
            assert await produce(link) == REFUSED
            assert stage.faults._tables[0].handlers == HANDLERS
            assert not fault.is_over

    run(scenario())


def test_wrong_names_are_refused_with_those_that_exist() -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(2, fsync=False) as cluster:
            faults = cluster.faults
            with pytest.raises(InvalidInput, match=r"no API 'Produze'.*Produce \(0\), Fetch \(1\)"):
                faults.error("Produze", REFUSED)
            with pytest.raises(InvalidInput, match=r"no API 99.*DescribeCluster \(60\)"):
                faults.drop(99)
            with pytest.raises(InvalidInput, match=r"no error 'NOT_LEADER'.*NOT_LEADER_OR_FOLLOWER"):
                faults.error("Produce", "NOT_LEADER")
            with pytest.raises(InvalidInput, match=r"no error <ErrorCode\.NONE"):
                faults.error("Produce", ErrorCode.NONE)
            with pytest.raises(InvalidBrokers, match="no broker 7; there are 0, 1"):
                faults.disconnect("Produce", broker=7)
            with pytest.raises(InvalidBrokers, match="no broker is on both sides"):
                faults.cut_brokers(0, 0)
            with pytest.raises(InvalidInput, match=r"no log dir 3; it has 0 \("):
                faults.fail_log_dir(1, 3)
            with pytest.raises(InvalidInput, match="at least once"):
                faults.drop("Produce", times=0)
            with pytest.raises(InvalidInput, match="requests, answers or both"):
                faults.cut_clients(requests=False, answers=False)
            with pytest.raises(InvalidInput, match="Heartbeat requests are not about topics"):
                faults.drop("Heartbeat", topic="t")
            with pytest.raises(TypeError, match="no argument brokers; there are times, for_s, broker"):
                faults.drop("Produce", brokers=1)  # type: ignore[call-arg]
            assert faults.active == ()
            await cluster.stop_broker(1)
            with pytest.raises(InvalidBrokers, match="Broker 1 is not running"):
                faults.expire_session(1)

    run(scenario())


def test_faults_need_a_started_cluster() -> None:
    with pytest.raises(RuntimeError, match="not been started"):
        EmbeddedCluster(1).faults.drop("Produce")
