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
        producer.send("t", b"hello").get(timeout=30)
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


def test_fixtures_work_without_configuration(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(_TESTS)
    pytester.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=2)


def test_plugin_imports_nothing_before_a_test_uses_a_fixture(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import sys\ndef test_it(): assert 'restow.cluster' not in sys.modules")
    pytester.runpytest_subprocess().assert_outcomes(passed=1)
