"""Permissions that are withdrawn during a run, on an Apache Kafka 4.3.1 with ACLs.

The run ends with the refused request and the remedy; with the permissions back, the remedy works.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from restow.client import ConnectionSettings, connected
from restow.execute.progress.outcome import Ending
from restow.execute.repair.doctor import fix
from restow.execute.run.options import RunOptions
from restow.execute.run.start import resume
from restow.execute.throttle.throttles import ThrottleRates
from restow.model import Limits, TopicPartition
from tests.clients.watched_run import WatchedRun, fill, make, plan_to, replicas_of, throttles
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from harness.apache import Cluster

pytestmark = [pytest.mark.apache, pytest.mark.full]

PASSWORD = "open sesame"  # noqa: S105
ON_CLUSTER = ("DESCRIBE", "ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")
ON_TOPIC = ("DESCRIBE", "ALTER_CONFIGS", "DESCRIBE_CONFIGS")
OPTIONS = RunOptions(throttle=ThrottleRates(rate=1_000_000), survey_every_s=0.5)
NAMES = [TopicPartition("t", number) for number in range(2)]


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect garbage now, and not during another test."""
    caplog.set_level(logging.CRITICAL + 1, logger="kafka")
    yield
    gc.collect()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    login = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "listener.name.clear.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clear.plain.sasl.jaas.config": login,
    }
    with needs_kafka():
        folder = tmp_path_factory.mktemp("asking")
        listeners = {"CLEAR": "SASL_PLAINTEXT"}
        with apache_kafka(folder, nodes=2, version=KAFKA_4, settings=settings, listeners=listeners) as up:
            yield up


def as_alice(cluster: Cluster) -> ConnectionSettings:
    options = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    return ConnectionSettings(bootstrap=cluster.at["CLEAR"], options=options)


def grant(bootstrap: str) -> None:
    from kafka.admin import ACL, ACLOperation, ACLPermissionType, KafkaAdminClient
    from kafka.admin import ResourcePattern as On
    from kafka.admin import ResourceType as Kind

    wanted = [(On(Kind.TOPIC, "t"), each) for each in ON_TOPIC]
    wanted += [(On(Kind.CLUSTER, "kafka-cluster"), each) for each in ON_CLUSTER]
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        client.create_acls(
            [
                ACL("User:alice", "*", ACLOperation[operation], ACLPermissionType.ALLOW, on)
                for on, operation in wanted
            ]
        )


def withdraw(bootstrap: str, operation: str) -> None:
    from kafka.admin import (
        ACLFilter,
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        KafkaAdminClient,
        ResourcePatternFilter,
        ResourceType,
    )

    everywhere = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    wanted = ACLFilter(
        "User:alice", None, ACLOperation[operation], ACLPermissionType.ALLOW, resource_pattern=everywhere
    )
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as client:
        client.delete_acls([wanted])


@pytest.mark.parametrize("operation", ["DESCRIBE", "ALTER", "ALTER_CONFIGS"])
def test_run_ends_with_a_remedy_when_permissions_are_withdrawn(
    cluster: Cluster, tmp_path: Path, operation: str
) -> None:
    root = cluster.at["PLAINTEXT"]

    async def main() -> None:
        async with (
            connected(ConnectionSettings(bootstrap=root)) as admin,
            connected(as_alice(cluster)) as alice,
        ):
            await make(admin, "t", [(1,), (1,)])
            await fill(root, "t", 2, 8_000_000)
            await asyncio.to_thread(grant, root)
            while (await alice.permissions(["t"])).cluster is None:
                await asyncio.sleep(0.1)
            stage = WatchedRun(alice, tmp_path)
            aims = dict.fromkeys(NAMES, (2,))
            run = stage.start(await plan_to(admin, aims, Limits(moves_in=1)), OPTIONS)
            await stage.until(lambda: run.done() or stage.told("begun"), "the first one is under way")
            assert not run.done(), run.exception()
            await asyncio.to_thread(withdraw, root, operation)
            outcome = await asyncio.wait_for(run, 240)
            assert outcome.ending in (Ending.FAILED, Ending.IN_PART), outcome
            said = f"{outcome.reason} {outcome.dropped} {stage.told('dropped')}"
            assert "AUTHORIZATION_FAILED" in said, outcome
            assert "`restow resume`" in outcome.next or "`restow doctor --fix`" in outcome.next

            await asyncio.to_thread(grant, root)
            async with asyncio.timeout(120):
                while await throttles(admin):
                    await fix(stage.world, stage.watcher)
            outcome = await resume(stage.world, RunOptions(), stage.watcher)
            assert outcome.is_good, outcome
            assert await replicas_of(admin, "t") == [(2,), (2,)]
            assert await admin.list_partition_reassignments() == {}
            assert await throttles(admin) == {}
            assert await admin.delete_topics(["t"]) == {"t": None}

    asyncio.run(main())
