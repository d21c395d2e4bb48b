"""Requests about configs, good and bad, to a real Kafka 3.9 and to an embedded cluster: the same answers.

Codes, values, sources and read-only flags are compared; messages are not.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from harness.apache import apache_kafka
from harness.zookeeper import zookeeper
from restow.cluster.config.table import BROKER_CONFIGS, TOPIC_CONFIGS
from restow.cluster.embedded import EmbeddedCluster
from restow.wire import messages
from restow.wire.error_codes import ErrorCode
from tests.conftest import needs_kafka
from tests.unit.broker.conversations import Client

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.apache

CREATE, DESCRIBE, ALTER, INCREMENTAL = 19, 32, 33, 44
TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
PAUSE_S = 0.3
PATIENCE_S = 120.0
ME = "1"
"""The id of the broker that is asked, on both sides."""
BROKER_NAMES = (
    "log.retention.ms",
    "log.retention.hours",
    "log.flush.interval.ms",
    "message.max.bytes",
    "min.insync.replicas",
    "num.partitions",
    "replica.lag.time.max.ms",
    "unclean.leader.election.enable",
    "no.such.config",
)


@pytest.fixture(scope="module")
def apache(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Yield the port of a broker with id 1."""
    folder = tmp_path_factory.mktemp("config-answers")
    with ExitStack() as stack:
        with needs_kafka():
            server = stack.enter_context(zookeeper(folder / "zookeeper", fsync=False))
            cluster = stack.enter_context(apache_kafka(folder / "kafka", zookeeper=server.address))
        yield int(cluster.bootstrap.rpartition(":")[2])


def resource(kind: int, name: str, keys: list[str] | None = None) -> Any:
    return messages.DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=keys
    )


def describe(*resources: Any, synonyms: bool = True) -> tuple[int, int, Any]:
    return DESCRIBE, 4, messages.DescribeConfigsRequest(resources=list(resources), include_synonyms=synonyms)


def change(
    kind: int, name: str, *changes: tuple[str, int, str | None], check: bool = False
) -> tuple[int, int, Any]:
    request = messages.IncrementalAlterConfigsRequest
    asked = request.AlterConfigsResource
    configs = [
        asked.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resources = [asked(resource_type=kind, resource_name=name, configs=configs)]
    return INCREMENTAL, 1, request(resources=resources, validate_only=check)


def replace(kind: int, name: str, **values: str | None) -> tuple[int, int, Any]:
    request = messages.AlterConfigsRequest
    asked = request.AlterConfigsResource
    configs = [
        asked.AlterableConfig(name=key.replace("_", "."), value=value) for key, value in values.items()
    ]
    return ALTER, 2, request(resources=[asked(resource_type=kind, resource_name=name, configs=configs)])


ALL_OF_T = describe(resource(TOPIC, "t", sorted(TOPIC_CONFIGS)))
QUESTIONS = {
    "a topic": ALL_OF_T,
    "a topic without synonyms": describe(resource(TOPIC, "t", ["retention.ms", "flush.ms"]), synonyms=False),
    "configs that are not there": describe(resource(TOPIC, "t", ["retention.ms", "no.such.config"])),
    "no configs": describe(resource(TOPIC, "t", [])),
    "a topic that is not there": describe(resource(TOPIC, "nobody", None)),
    "a topic that cannot be": describe(resource(TOPIC, "no body", None)),
    "a topic without a name": describe(resource(TOPIC, "", None)),
    "this broker": describe(resource(BROKER, ME, list(BROKER_NAMES))),
    "all brokers": describe(resource(BROKER, "", None)),
    "another broker": describe(resource(BROKER, "77", None)),
    "a broker that is no number": describe(resource(BROKER, "x", None)),
    "a kind that is not there": describe(resource(99, "x", None)),
    "several": describe(resource(TOPIC, "nobody", None), resource(TOPIC, "t", ["retention.ms"])),
    "set": change(TOPIC, "t", ("retention.ms", SET, "1000"), ("segment.bytes", SET, "2000")),
    "seen": ALL_OF_T,
    "set what cannot be": change(TOPIC, "t", ("retention.ms", SET, "soon")),
    "set too little": change(TOPIC, "t", ("segment.bytes", SET, "13")),
    "set what is not there": change(TOPIC, "t", ("no.such.config", SET, "1")),
    "set nothing": change(TOPIC, "t", ("retention.ms", SET, None)),
    "set twice": change(TOPIC, "t", ("retention.ms", SET, "1"), ("retention.ms", SET, "2")),
    "append": change(TOPIC, "t", ("cleanup.policy", APPEND, "compact")),
    "append what cannot be": change(TOPIC, "t", ("cleanup.policy", APPEND, "burn")),
    "append to a number": change(TOPIC, "t", ("retention.ms", APPEND, "1")),
    "subtract": change(TOPIC, "t", ("cleanup.policy", SUBTRACT, "delete")),
    "only checked": change(TOPIC, "t", ("retention.ms", SET, "7"), check=True),
    "only checked and bad": change(TOPIC, "t", ("retention.ms", SET, "x"), check=True),
    "throttled replicas": change(TOPIC, "t", ("leader.replication.throttled.replicas", SET, "0:1,1:1")),
    "throttled replicas that cannot be": change(
        TOPIC, "t", ("leader.replication.throttled.replicas", SET, "0-1")
    ),
    "lags that do not fit": change(
        TOPIC, "t", ("min.compaction.lag.ms", SET, "10"), ("max.compaction.lag.ms", SET, "5")
    ),
    "seen after that": ALL_OF_T,
    "delete": change(TOPIC, "t", ("retention.ms", DELETE, None), ("never.set", DELETE, None)),
    "delete one": change(TOPIC, "t", ("retention.ms", DELETE, None)),
    "of nobody": change(TOPIC, "nobody", ("retention.ms", SET, "1")),
    "of this broker": change(BROKER, ME, ("log.retention.ms", SET, "5000")),
    "of this broker, a rate": change(BROKER, ME, ("leader.replication.throttled.rate", SET, "5000")),
    "of this broker, fixed": change(BROKER, ME, ("num.partitions", SET, "3")),
    "of this broker, bad": change(BROKER, ME, ("log.retention.ms", SET, "x")),
    "of another broker": change(BROKER, "77", ("log.retention.ms", SET, "5")),
    "of all brokers": change(BROKER, "", ("min.insync.replicas", SET, "1")),
    "seen of all brokers": describe(resource(BROKER, "", ["min.insync.replicas"])),
    "seen of this broker": describe(resource(BROKER, ME, list(BROKER_NAMES))),
    "seen through the broker": describe(resource(TOPIC, "t", ["retention.ms", "min.insync.replicas"])),
    "replace": replace(TOPIC, "t", retention_ms="77", flush_ms="5"),
    "replace with what is not there": replace(TOPIC, "t", no_such_config="1"),
    "replace with nothing": replace(TOPIC, "t", retention_ms=None),
    "replaced": ALL_OF_T,
}


def told(api_key: int, answer: Any) -> Any:
    """Return the parts of an answer that are compared."""
    if api_key != DESCRIBE:
        return [ErrorCode.of(each.error_code).name for each in answer.responses]
    return [
        (
            ErrorCode.of(each.error_code).name,
            each.resource_type,
            each.resource_name,
            {
                config.name: (
                    config.value,
                    config.read_only,
                    config.config_source,
                    config.is_sensitive,
                    config.config_type,
                    tuple((it.name, it.value, it.source) for it in config.synonyms),
                )
                for config in each.configs
                if config.name in TOPIC_CONFIGS or config.name in BROKER_CONFIGS
            },
        )
        for each in answer.results
    ]


async def asked(client: Client, api_key: int, version: int, body: Any) -> Any:
    client.ask(api_key, version, 1, body)
    answer = asyncio.create_task(client.answer(api_key, version))
    hung_up = asyncio.create_task(client.is_closed.wait())
    await asyncio.wait((answer, hung_up), return_when=asyncio.FIRST_COMPLETED)
    assert answer.done(), "the broker hung up"
    hung_up.cancel()
    return answer.result()


async def create_topic(client: Client) -> None:
    """Create the topic. A broker may have to become controller first."""
    create = messages.CreateTopicsRequest
    topic = create.CreatableTopic(name="t", num_partitions=2, replication_factor=1)
    code = ErrorCode.NOT_CONTROLLER
    while code is ErrorCode.NOT_CONTROLLER:
        answer = await asked(client, CREATE, 5, create(topics=[topic], timeout_ms=60_000))
        code = ErrorCode.of(answer.topics[0].error_code)
        await asyncio.sleep(PAUSE_S)
    assert code is ErrorCode.NONE


async def both_answers(clients: list[Client]) -> dict[str, tuple[Any, Any]]:
    """Return both answers to every request.

    Changes reach brokers through their store: requests with different answers are repeated.
    """
    deadline = time.monotonic() + PATIENCE_S
    for client in clients:
        await create_topic(client)
    answers = {}
    for name, (api_key, version, body) in QUESTIONS.items():
        while True:
            first, second = [told(api_key, await asked(each, api_key, version, body)) for each in clients]
            if first == second or api_key != DESCRIBE or time.monotonic() > deadline:
                break
            await asyncio.sleep(PAUSE_S)
        answers[name] = first, second
        await asyncio.sleep(PAUSE_S if api_key != DESCRIBE else 0)
    for client in clients:
        client.connection.close()
    return answers


def test_both_clusters_give_the_same_answers(apache: int, tmp_path: Path) -> None:
    async def scenario() -> dict[str, tuple[Any, Any]]:
        async with EmbeddedCluster(2, data=tmp_path, fsync=False) as cluster:
            await cluster.stop_broker(0)
            ours = int(cluster.brokers[1].address.rpartition(":")[2])
            return await both_answers([await Client.connect(port) for port in (apache, ours)])

    answers = asyncio.run(asyncio.wait_for(scenario(), 2 * PATIENCE_S))
    different = [
        f"{name}:\n  Kafka {theirs}\n  here  {ours}"
        for name, (theirs, ours) in answers.items()
        if theirs != ours
    ]
    assert not different, "\n".join(different)
