"""A real broker for the session, and a fresh topic for every test."""

from __future__ import annotations

from contextlib import ExitStack, closing
from itertools import product
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from harness.apache import apache_kafka
from tests.clients.topics import Topics
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTITIONS = 6


@pytest.fixture(scope="session")
def bootstrap(jars: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of the session's broker."""
    with ExitStack() as stack:
        with needs_kafka():
            cluster = stack.enter_context(apache_kafka(tmp_path_factory.mktemp("kafka")))
        yield cluster.bootstrap


@pytest.fixture
def topics(bootstrap: str) -> Iterator[Topics]:
    """Create two topics of six partitions each, and a group without other members."""
    from kafka import KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic

    unique = uuid4().hex
    names = (f"one-{unique}", f"two-{unique}")
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics(
            [NewTopic(name, num_partitions=PARTITIONS, replication_factor=1) for name in names]
        )

    with closing(KafkaProducer(bootstrap_servers=bootstrap)) as producer:

        def nudge() -> None:
            for name, partition in product(names, range(PARTITIONS)):
                producer.send(name, b"wake up", partition=partition)
            producer.flush()

        yield Topics(bootstrap, f"group-{unique}", names, PARTITIONS, nudge)
