"""The pytest fixtures, used by a project of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

pytest_plugins = ["pytester"]

_TESTS = """
    from kafka import KafkaConsumer, KafkaProducer

    def test_write_and_read(restow_cluster):
        producer = KafkaProducer(bootstrap_servers=restow_cluster.bootstrap)
        producer.send("t", b"hello").get(timeout=120)
        producer.close()
        servers = restow_cluster.bootstrap
        consumer = KafkaConsumer("t", bootstrap_servers=servers, auto_offset_reset="earliest")
        assert next(consumer).value == b"hello"
        consumer.close()

    def test_several(restow_cluster_factory):
        one, two = restow_cluster_factory(brokers=1), restow_cluster_factory(brokers=2, racks=("a", "b"))
        assert one.bootstrap != two.bootstrap
        two.kill_broker(1)
        two.start_broker(1)
        assert len(two.bootstrap.split(",")) == 2
"""
_SHARED = """
    import pytest
    from kafka import KafkaProducer
    from restow.cluster import ThreadedCluster

    @pytest.fixture(scope="session")
    def restow_cluster():
        with ThreadedCluster(brokers=1) as cluster:
            yield cluster

    def write(servers):
        producer = KafkaProducer(bootstrap_servers=servers, retry_backoff_ms=20)
        producer.send("t", b"hello").get(timeout=120)
        producer.close()

    def test_fault_is_met(restow_cluster, restow_faults):
        fault = restow_faults.error("Produce", "REQUEST_TIMED_OUT", times=2)
        write(restow_cluster.bootstrap)
        assert fault.hits == 2
        restow_faults.drop("Produce")

    def test_fault_has_ended_with_its_test(restow_cluster):
        write(restow_cluster.bootstrap)
"""


def test_fixtures_work_without_configuration(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_TESTS)
    pytester.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=2)


def test_faults_end_with_their_test_on_a_shared_cluster(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_SHARED)
    pytester.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=2)


def test_plugin_imports_nothing_before_a_test_uses_a_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\ndef test_it(): assert 'restow.cluster' not in sys.modules")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
