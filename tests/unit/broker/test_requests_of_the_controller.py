"""Controller requests are accepted only from the current controller, ControlledShutdown only from that
broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from restow.cluster.broker.controller_requests import ControllerRequests
from restow.cluster.embedded import EmbeddedCluster
from restow.cluster.handlers import HangUp
from restow.cluster.store import ensure_paths
from restow.cluster.store.embedded import EmbeddedStore
from restow.cluster.store.znodes import ControllerEpoch, ControllerZNode
from restow.wire import messages
from restow.wire.error_codes import ErrorCode
from tests.unit.broker.conversations import Client, run
from tests.unit.broker.harm import port_of

if TYPE_CHECKING:
    from pathlib import Path

    from restow.cluster.store import Store

OURS = 77
"""The broker epoch of the broker under test."""


def order(epoch: int, controller_id: int = 1, broker_epoch: int = OURS) -> Any:
    return messages.StopReplicaRequest(
        controller_id=controller_id, controller_epoch=epoch, broker_epoch=broker_epoch, topic_states=[]
    )


async def elected(store: Store, controller_id: int, epoch: int) -> None:
    """Write a controller into the store, as an election would."""
    if await store.exists(ControllerZNode.PATH):
        await store.delete(ControllerZNode.PATH)
    if not await store.exists(ControllerEpoch.PATH):
        await store.create(ControllerEpoch.PATH, b"0")
    await store.create(
        ControllerZNode.PATH, ControllerZNode(broker_id=controller_id, timestamp_ms=1).encode()
    )
    await store.set(ControllerEpoch.PATH, ControllerEpoch(epoch).encode())


async def with_controller(controller_id: int = 1, epoch: int = 5) -> tuple[ControllerRequests, Store]:
    store = cast("Store", EmbeddedStore().session())
    await ensure_paths(store, ["/brokers"])
    await elected(store, controller_id, epoch)
    requests = ControllerRequests(store)
    requests.broker_epoch = OURS
    return requests, store


def test_request_is_accepted_if_it_agrees_with_the_store() -> None:
    async def scenario() -> None:
        requests, _ = await with_controller()
        assert await requests.refusal_of(order(5)) == ErrorCode.NONE
        assert requests.controller_epoch == 5

    run(scenario())


def test_request_of_controller_epoch_unknown_to_the_store_is_not_answered() -> None:
    """A controller whose election this broker cannot see yet retries, and is then accepted."""

    async def scenario() -> None:
        requests, store = await with_controller()
        assert await requests.refusal_of(order(5)) == ErrorCode.NONE
        for epoch in (6, 2**31 - 1):
            with pytest.raises(HangUp, match=f"epoch {epoch}, but the store knows of epoch 5"):
                await requests.refusal_of(order(epoch))
        assert requests.controller_epoch == 5
        assert await requests.refusal_of(order(5)) == ErrorCode.NONE
        await elected(store, 2, 6)
        assert await requests.refusal_of(order(6, controller_id=2)) == ErrorCode.NONE
        assert await requests.refusal_of(order(5)) == ErrorCode.STALE_CONTROLLER_EPOCH

    run(scenario())


def test_request_of_other_broker_than_the_controller_is_refused() -> None:
    async def scenario() -> None:
        requests, _ = await with_controller()
        for _ in range(2):
            assert await requests.refusal_of(order(5, controller_id=2)) == ErrorCode.STALE_CONTROLLER_EPOCH
            assert await requests.refusal_of(order(4)) == ErrorCode.STALE_CONTROLLER_EPOCH
            assert await requests.refusal_of(order(5)) == ErrorCode.NONE

    run(scenario())


def test_request_is_refused_without_a_controller() -> None:
    async def scenario() -> None:
        requests, store = await with_controller()
        await store.delete(ControllerZNode.PATH)
        assert await requests.refusal_of(order(5)) == ErrorCode.STALE_CONTROLLER_EPOCH
        await elected(store, 3, 6)
        assert await requests.refusal_of(order(6, controller_id=3)) == ErrorCode.NONE

    run(scenario())


@pytest.mark.parametrize("broker_epoch", [-1, 0, OURS - 1, OURS + 1, 2**63 - 1])
def test_request_with_other_broker_epoch_is_refused(broker_epoch: int) -> None:
    async def scenario() -> None:
        requests, _ = await with_controller()
        refusal = await requests.refusal_of(order(5, broker_epoch=broker_epoch))
        assert refusal == ErrorCode.STALE_BROKER_EPOCH

    run(scenario())


def test_request_on_an_earlier_connection_of_the_same_controller_is_not_answered() -> None:
    async def scenario() -> None:
        requests, store = await with_controller()
        assert await requests.refusal_of(order(5), 3) == ErrorCode.NONE
        assert await requests.refusal_of(order(5), 8) == ErrorCode.NONE
        with pytest.raises(HangUp, match="newer ones have overtaken"):
            await requests.refusal_of(order(5), 3)
        assert await requests.refusal_of(order(5), 8) == ErrorCode.NONE
        await elected(store, 2, 6)
        assert await requests.refusal_of(order(6, controller_id=2), 4) == ErrorCode.NONE

    run(scenario())


def test_request_has_to_be_repeated_until_the_broker_is_registered() -> None:
    async def scenario() -> None:
        requests, _ = await with_controller()
        requests.broker_epoch = 0
        with pytest.raises(HangUp, match="not registered"):
            await requests.refusal_of(order(5))

    run(scenario())


def forged(cluster: EmbeddedCluster) -> list[tuple[int, int, Any]]:
    """Forge requests that would break the cluster, with everything that a client can know."""
    stop = messages.StopReplicaRequest
    topic = stop.StopReplicaTopicState
    part = topic.StopReplicaPartitionState(partition_index=0, leader_epoch=-1, delete_partition=True)
    states = [topic(topic_name="t", partition_states=[part])]
    latest = 2**31 - 1
    return [
        (5, 4, stop(controller_id=0, controller_epoch=latest, broker_epoch=-1, topic_states=states)),
        (5, 4, stop(controller_id=0, controller_epoch=1, broker_epoch=-1, topic_states=states)),
        (5, 4, stop(controller_id=0, controller_epoch=latest, broker_epoch=2**63 - 1, topic_states=states)),
        (4, 7, messages.LeaderAndIsrRequest(controller_epoch=latest, topic_states=[], live_leaders=[])),
        (6, 8, messages.UpdateMetadataRequest(controller_epoch=latest, topic_states=[], live_brokers=[])),
        *((7, 3, messages.ControlledShutdownRequest(broker_id=each, broker_epoch=-1)) for each in range(2)),
    ]


def test_forged_controller_requests_change_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedCluster(brokers=2, data=tmp_path, fsync=False) as cluster:
            services = [broker.services for broker in cluster.brokers.values()]
            known = services[0].metadata
            assert services[0].creation.create_in_passing("t")
            assert await known.until(lambda: known.partition_count("t") == 1, 60)
            before = known.partitions("t")
            epochs = [each.controller_requests.controller_epoch for each in services]
            for broker_id in cluster.brokers:
                for key, version, body in forged(cluster):
                    client = await Client.connect(port_of(cluster, broker_id))
                    client.ask(key, version, 1, body)
                    assert (await client.answer(key, version)).error_code != 0
                    client.connection.close()
            assert known.partitions("t") == before
            assert [each.controller_requests.controller_epoch for each in services] == epochs
            leader = services[before[0].leader_id]
            assert [each.topic_partition.topic for each in leader.replicas.hosted()] == ["t"]
            assert services[0].creation.create_in_passing("u")
            assert await known.until(lambda: known.partition_count("u") == 1, 60)

    run(scenario())
