"""Cut connections, broken log dirs and lost sessions, on a cluster on the test's own loop."""

from __future__ import annotations

import asyncio

import pytest

from restow.cluster import ErrorCode
from tests.unit.cluster.fault_stage import WAIT_S, ask_metadata, produce, run, staged, until

STORAGE_ERROR = ErrorCode.KAFKA_STORAGE_ERROR
QUICK_ISR = {"replica_lag_time_max_ms": "500"}


@pytest.mark.parametrize(("requests", "answers"), [(True, True), (True, False), (False, True)])
def test_cut_client_notices_nothing_and_goes_on_afterwards(requests: bool, answers: bool) -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link, other = await stage.client(), await stage.client(client_id="other")
            assert await produce(link) == 0
            with stage.faults.cut_clients(client_id="tester", requests=requests, answers=answers) as fault:
                writing = [asyncio.ensure_future(produce(link)) for _ in range(3)]
                for _ in range(3):
                    assert await produce(other) == 0
                if not requests:
                    while await stage.end_offset() < 7:
                        await asyncio.sleep(0.02)
                assert await stage.end_offset() == (4 if requests else 7)
                assert not any(each.done() for each in writing)
                assert fault.hits == 1
            assert await asyncio.gather(*writing) == [0, 0, 0]
            assert link.is_open

    run(scenario())


def test_new_connection_of_a_cut_client_gets_no_answer() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            with stage.faults.cut_clients(broker=0) as fault:
                link = await stage.client()
                writing = asyncio.ensure_future(produce(link))
                await fault.until(1)
                assert (await ask_metadata(await stage.client(1))).brokers, "broker 1 is not cut off"
                assert not writing.done()
            assert await writing == 0

    run(scenario())


def test_reset_ends_open_and_new_connections_of_clients_alone() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            assert await produce(link) == 0
            with stage.faults.cut_clients(broker=0, reset=True):
                await until(lambda: not link.is_open, "the connection is reset")
                with pytest.raises(ConnectionError):
                    await ask_metadata(await stage.client())
            assert await produce(await stage.client()) == 0

    run(scenario())


@pytest.mark.parametrize("reset", [False, True])
def test_broker_that_is_cut_off_leaves_the_isr_and_comes_back(reset: bool) -> None:
    async def scenario() -> None:
        async with staged(**QUICK_ISR) as stage:
            link = await stage.client()
            assert await produce(link) == 0
            with stage.faults.cut_brokers(2, reset=reset) as fault:
                assert await produce(link) == 0, "the others go on without it"
                await until(lambda: stage.in_sync() == {0, 1}, "the ISR is smaller")
                assert fault.hits >= 1
            await until(lambda: stage.in_sync() == {0, 1, 2}, "the ISR is whole")

    run(scenario())


def test_one_way_cut_loses_what_the_first_broker_sends() -> None:
    async def scenario() -> None:
        async with staged(**QUICK_ISR) as stage:
            link = await stage.client()
            assert await produce(link) == 0
            with stage.faults.cut_brokers(0, 2, one_way=True):
                assert await produce(link) == 0
                assert [stage.log_end(broker) for broker in (0, 1, 2)] == [2, 2, 1]
            await until(lambda: stage.in_sync() == {0, 1, 2}, "the ISR is whole")

    run(scenario())


def test_failed_log_dir_moves_leaders_away_and_comes_back_afterwards() -> None:
    async def scenario() -> None:
        async with staged(log_dirs=2) as stage:
            link = await stage.client()
            assert await produce(link) == 0
            path = stage.log_dir()
            async with stage.faults.fail_log_dir(0, path) as fault:
                assert stage.cluster.brokers[0].services.logs.offline == (path,)
                assert await produce(link) in (
                    ErrorCode.KAFKA_STORAGE_ERROR,
                    ErrorCode.NOT_LEADER_OR_FOLLOWER,
                )
                await until(lambda: stage.leader() in (1, 2), "another leader")
                assert fault.hits >= 1
            assert stage.cluster.brokers[0].services.logs.offline == ()
            await until(lambda: stage.in_sync() == {0, 1, 2}, "the ISR is whole")

    run(scenario())


def test_broker_ends_with_its_last_log_dir_and_is_started_again() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            broker = stage.cluster.brokers[0]
            async with stage.faults.fail_log_dir(0):
                await until(
                    lambda: not broker.is_running and stage.leader() in (1, 2), "the broker has ended"
                )
            assert broker.is_running
            assert not broker.has_failed
            await until(lambda: stage.in_sync() == {0, 1, 2}, "the ISR is whole")

    run(scenario())


def test_full_log_dir_can_be_read_until_something_is_written() -> None:
    async def scenario() -> None:
        async with staged(log_dirs=2) as stage:
            link = await stage.client()
            assert await produce(link) == 0
            async with stage.faults.fill_log_dir(0, stage.log_dir()):
                assert await stage.end_offset() == 1
                assert stage.faults.disk.space(stage.log_dir())[1] == 0
                assert await produce(link) == STORAGE_ERROR
                await until(lambda: stage.leader() in (1, 2), "another leader")
            assert stage.cluster.brokers[0].services.logs.offline == ()

    run(scenario())


def test_slow_log_dir_delays_its_broker_until_the_fault_ends() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            with stage.faults.slow_log_dir(0, by_s=10 * WAIT_S) as fault:
                writing = asyncio.ensure_future(produce(link))
                await fault.until(1)
                assert (await ask_metadata(await stage.client())).brokers, "what needs no disk is answered"
                assert not writing.done()
            assert await writing == 0

    run(scenario())


def test_slow_log_dir_delays_a_follower() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            with stage.faults.slow_log_dir(2, by_s=10 * WAIT_S) as fault:
                await fault.until(1)
                writing = asyncio.ensure_future(produce(link))
                await until(lambda: stage.log_end(1) == 1, "the other follower has it")
                assert not writing.done(), "acks=all waits for the slow follower"
            assert await writing == 0

    run(scenario())


def test_broker_whose_session_expires_loses_its_leaders_and_comes_back() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            before = stage.cluster.brokers[0].services.store.session_id
            async with stage.faults.expire_session(0) as fault:
                await until(lambda: stage.leader() in (1, 2), "another leader")
                assert fault.hits == 1
            assert stage.cluster.brokers[0].services.store.session_id != before
            await until(lambda: stage.in_sync() == {0, 1, 2}, "the ISR is whole")

    run(scenario())


def test_cluster_stops_while_faults_are_active() -> None:
    async def scenario() -> None:
        async with staged() as stage:
            link = await stage.client()
            stage.faults.drop("Produce")
            stage.faults.cut_brokers(0)
            writing = asyncio.ensure_future(produce(link))
        with pytest.raises(ConnectionError):
            await writing

    run(scenario())
