"""Which requests an Apache Kafka 4.3.1 and the embedded cluster refuse (`tests/acl_questions.py`)."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.jars import KAFKA_4
from restow.cluster.security.acls import CLUSTER_NAME
from restow.cluster.security.plain import plain_token
from restow.wire.messages import (
    CreateAclsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.acl_questions import GRANTS, RESOURCES, VECTORS, VERSIONS, recorded, refusal_in, request_of
from tests.clients.embedded import embedded
from tests.conftest import needs_kafka
from tests.unit.broker.conversations import Client

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.apache, pytest.mark.full]

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"
ROOT, PASSWORD = "root", "secret"


async def logged_in(bootstrap: str, user: str) -> Client:
    client = await Client.connect(int(bootstrap.partition(",")[0].rpartition(":")[2]))
    client.ask(17, 1, 1, SaslHandshakeRequest(mechanism="PLAIN"))
    assert not (await client.answer(17, 1)).error_code
    client.ask(36, 1, 2, SaslAuthenticateRequest(auth_bytes=plain_token(user, PASSWORD)))
    assert not (await client.answer(36, 1)).error_code
    return client


async def create_acls(bootstrap: str) -> None:
    client = await logged_in(bootstrap, ROOT)
    made = CreateAclsRequest.AclCreation
    creations = [
        made(
            resource_type=RESOURCES[kind],
            resource_name=CLUSTER_NAME if kind == "CLUSTER" else "*",
            resource_pattern_type=3,
            principal=f"User:{user}",
            host="*",
            operation=number,
            permission_type=3,
        )
        for user, granted in GRANTS.items()
        for kind, number in granted
    ]
    client.ask(30, 2, 3, CreateAclsRequest(creations=creations))
    assert not any(each.error_code for each in (await client.answer(30, 2)).results)
    client.connection.close()
    await client.is_closed.wait()


async def wait_until_groups_are_coordinated(bootstrap: str) -> None:
    """Ask until a broker coordinates the group of the requests. Before that, it refuses nobody."""
    client = await logged_in(bootstrap, ROOT)
    wrong = True
    while wrong:
        for key in (10, 9):
            client.ask(key, VERSIONS[key], 4, request_of(key).body)
            wrong = (await client.answer(key, VERSIONS[key])).error_code != 0
        await asyncio.sleep(0.1)
    client.connection.close()
    await client.is_closed.wait()


async def refused(bootstrap: str, user: str, key: int) -> str:
    """Return how the request is refused."""
    client = await logged_in(bootstrap, user)
    version = VERSIONS[key]
    client.ask(key, version, 5, request_of(key).body)
    answer = await client.answer(key, version)
    client.connection.close()
    await client.is_closed.wait()
    return refusal_in(answer, version)


@pytest.fixture(scope="module")
def bootstraps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    users = dict.fromkeys((ROOT, *GRANTS), PASSWORD)
    listed = " ".join(f'user_{name}="{word}"' for name, word in users.items())
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{ROOT}",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clear.plain.sasl.jaas.config": f"{MODULE} {listed};",
    }
    with ExitStack() as stack:
        with needs_kafka():
            theirs = stack.enter_context(
                apache_kafka(
                    tmp_path_factory.mktemp("apache"),
                    version=KAFKA_4,
                    settings=settings,
                    listeners={"CLEAR": "SASL_PLAINTEXT"},
                )
            )
        properties = {"auto.create.topics.enable": "false"}
        ours = stack.enter_context(
            embedded(
                1, listeners=("SASL_PLAINTEXT",), users=users, super_users=(ROOT,), properties=properties
            )
        )
        for bootstrap in (theirs.at["CLEAR"], ours.bootstrap):
            asyncio.run(create_acls(bootstrap))
            asyncio.run(wait_until_groups_are_coordinated(bootstrap))
        yield theirs.at["CLEAR"], ours.bootstrap


@pytest.mark.parametrize("key", sorted(VERSIONS))
def test_requests_are_refused_as_by_kafka(bootstraps: tuple[str, str], key: int) -> None:
    theirs, ours = bootstraps

    async def scenario() -> dict[str, tuple[str, str]]:
        return {user: (await refused(theirs, user, key), await refused(ours, user, key)) for user in GRANTS}

    found = asyncio.run(scenario())
    assert {user: mine for user, (_, mine) in found.items()} == {
        user: other for user, (other, _) in found.items()
    }
    kafka = {user: other for user, (other, _) in found.items()}
    if os.environ.get("RESTOW_RECORD"):
        known = recorded() if VECTORS.exists() else {}
        known[str(key)] = kafka
        ordered = {number: known[number] for number in sorted(known, key=int)}
        VECTORS.write_text(json.dumps(ordered, indent=1) + "\n")
    assert recorded()[str(key)] == kafka
