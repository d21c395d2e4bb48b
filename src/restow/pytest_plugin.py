"""pytest fixtures for other projects: a Kafka cluster in the test's own process.

    def test_orders(restow_cluster):
        producer = KafkaProducer(bootstrap_servers=restow_cluster.bootstrap)

    def test_with_racks(restow_cluster_factory):
        cluster = restow_cluster_factory(brokers=5, racks=("a", "b", "c"))
        cluster.kill_broker(1)

    def test_errors(restow_cluster, restow_faults):
        with restow_faults.error("Produce", "NOT_LEADER_OR_FOLLOWER", times=3):
            ...

pytest finds them once Restow is installed. Nothing is imported before a test uses a fixture.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from restow.cluster.faults.threaded import ThreadedFaults
    from restow.cluster.threaded import ThreadedCluster

_BROKERS = 3


@pytest.fixture
def restow_cluster_factory() -> Iterator[Callable[..., ThreadedCluster]]:
    """Return a factory with `EmbeddedCluster`'s arguments; its clusters stop with the test."""
    from restow.cluster.threaded import ThreadedCluster

    with ExitStack() as clusters:

        def make(brokers: int = _BROKERS, **options: Any) -> ThreadedCluster:
            return clusters.enter_context(ThreadedCluster(brokers, **options))

        yield make


@pytest.fixture
def restow_cluster(restow_cluster_factory: Callable[..., ThreadedCluster]) -> ThreadedCluster:
    """Return a cluster of three brokers with files in a temporary folder."""
    return restow_cluster_factory()


@pytest.fixture
def restow_faults(restow_cluster: ThreadedCluster) -> Iterator[ThreadedFaults]:
    """Return the faults of `restow_cluster`. They end with the test, even if tests share the cluster."""
    yield restow_cluster.faults
    restow_cluster.faults.end()
