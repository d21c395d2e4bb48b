"""Configs: what values may be, where they come from, and how changes add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.cluster.config.changes import AlterConfigOp, Operation, altered, check_broker, check_topic
from restow.cluster.config.configs import BrokerConfigs, ConfigSource
from restow.cluster.config.table import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigType, InvalidConfig
from restow.cluster.log import LogConfig
from restow.cluster.replication import ReplicationConfig

WEEK_MS = 604_800_000


def test_every_default_is_a_value_its_config_may_have() -> None:
    for definition in (*TOPIC_CONFIGS.values(), *BROKER_CONFIGS.values()):
        if definition.default is not None:
            definition.parse(definition.default)


def test_every_stand_in_is_a_broker_config() -> None:
    named = [synonym.name for each in TOPIC_CONFIGS.values() for synonym in each.synonyms]
    assert set(named) <= set(BROKER_CONFIGS)


def test_defaults_are_those_of_the_logs_and_of_replication() -> None:
    configs = BrokerConfigs()
    assert configs.log_config("t") == LogConfig()
    assert configs.replication() == ReplicationConfig()
    assert configs.min_insync_replicas("t") == 1
    assert configs.delete_topic_enable


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("retention.ms", "soon", "a number of type LONG"),
        ("retention.ms", "-2", "at least -1"),
        ("retention.ms", "1e3", "a number of type LONG"),
        ("retention.ms", "٣", "a number of type LONG"),
        ("segment.bytes", "13", "at least 14"),
        ("segment.bytes", str(2**31), "a number of type INT"),
        ("min.insync.replicas", "0", "at least 1"),
        ("min.cleanable.dirty.ratio", "1.5", "at most 1"),
        ("min.cleanable.dirty.ratio", "nan", "at most 1"),
        ("cleanup.policy", "delete,burn", "compact, delete"),
        ("compression.type", "rar", "gzip"),
        ("preallocate", "yes", "true or false"),
        ("leader.replication.throttled.replicas", "0:1,x", "partition:broker"),
        ("leader.replication.throttled.replicas", "*,0:1", "partition:broker"),
        ("no.such.config", "1", "there is no topic config"),
        ("retention.ms", None, "needs a value"),
    ],
)
def test_a_value_that_cannot_be_is_refused_in_a_sentence(name: str, value: str | None, told: str) -> None:
    with pytest.raises(InvalidConfig, match=told) as refused:
        check_topic({name: value})
    assert name in str(refused.value)


def test_compaction_lags_must_fit_each_other() -> None:
    with pytest.raises(InvalidConfig, match=r"more than max\.compaction\.lag\.ms"):
        check_topic({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


@pytest.mark.parametrize("value", ["", "*", "0:1", "0:1, 2:3"])
def test_throttled_replicas_that_may_be(value: str) -> None:
    assert check_topic({"follower.replication.throttled.replicas": value})


def test_the_nearest_word_counts_and_all_are_shown() -> None:
    configs = BrokerConfigs({"log.retention.hours": "24", "min.insync.replicas": "2"})
    assert configs.log_config("t").retention_ms == 24 * 3_600_000
    configs.set_all_brokers({"log.retention.ms": "1000"})
    assert configs.log_config("t").retention_ms == 1000
    configs.set_broker({"log.retention.ms": "2000"})
    assert configs.log_config("t").retention_ms == 2000
    configs.set_topic("t", {"retention.ms": "3000"})
    assert configs.log_config("t").retention_ms == 3000
    assert configs.log_config("other").retention_ms == 2000
    (entry,) = configs.describe_topic("t", ["retention.ms"])
    assert (entry.value, entry.source, entry.type) == ("3000", ConfigSource.TOPIC, ConfigType.LONG)
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        ("retention.ms", "3000", ConfigSource.TOPIC),
        ("log.retention.ms", "2000", ConfigSource.BROKER),
        ("log.retention.ms", "1000", ConfigSource.ALL_BROKERS),
        ("log.retention.hours", "24", ConfigSource.FILE),
        ("log.retention.hours", "168", ConfigSource.DEFAULT),
    ]
    configs.drop_topic("t")
    configs.set_broker({})
    assert configs.log_config("t").retention_ms == 1000
    assert configs.min_insync_replicas("t") == 2


def test_hours_without_limit_have_no_limit() -> None:
    assert BrokerConfigs({"log.retention.hours": "-1"}).log_config("t").retention_ms == -1


def test_values_in_the_store_that_cannot_be_are_passed_over() -> None:
    configs = BrokerConfigs()
    configs.set_topic("t", {"retention.ms": "soon", "segment.ms": "5", "from.another.world": "1"})
    assert configs.log_config("t") == LogConfig(segment_ms=5)


def test_a_broker_does_not_start_with_a_value_that_cannot_be() -> None:
    with pytest.raises(InvalidConfig, match=r"num\.partitions"):
        BrokerConfigs({"num.partitions": "many"})


def test_a_broker_is_described_with_what_cannot_change() -> None:
    configs = BrokerConfigs({"broker.id": "7"})
    entries = {entry.name: entry for entry in configs.describe_broker()}
    assert entries["broker.id"].read_only
    assert (entries["broker.id"].value, entries["broker.id"].source) == ("7", ConfigSource.FILE)
    assert not entries["leader.replication.throttled.rate"].read_only
    assert entries["log.retention.hours"].value == "168"
    assert entries["log.retention.ms"].value is None
    assert configs.describe_all_brokers() == ()
    configs.set_all_brokers({"min.insync.replicas": "2"})
    assert [entry.name for entry in configs.describe_all_brokers()] == ["min.insync.replicas"]


def test_a_topic_to_be_is_described_by_what_it_would_say() -> None:
    entries = {entry.name: entry for entry in BrokerConfigs().describe_new_topic({"segment.ms": "5"})}
    assert set(entries) == set(TOPIC_CONFIGS)
    assert (entries["segment.ms"].value, entries["segment.ms"].source) == ("5", ConfigSource.TOPIC)
    assert entries["retention.ms"].is_default


def test_what_a_running_broker_cannot_change_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="cannot change while a broker runs"):
        check_broker({"broker.id": "1"}, for_all=False)
    with pytest.raises(InvalidConfig, match="name the broker"):
        check_broker({"leader.replication.throttled.rate": "1"}, for_all=True)
    assert check_broker({"leader.replication.throttled.rate": "1"}, for_all=False)
    assert check_broker({"min.insync.replicas": "2"}, for_all=True)


def test_changes_add_up() -> None:
    current = {"cleanup.policy": "delete", "retention.ms": "5"}
    changes = [
        AlterConfigOp("cleanup.policy", Operation.APPEND, "compact,delete"),
        AlterConfigOp("retention.ms", Operation.DELETE),
        AlterConfigOp("segment.ms", Operation.SET, "7"),
    ]
    after = altered(TOPIC_CONFIGS, current, changes)
    assert after == {"cleanup.policy": "delete,compact", "segment.ms": "7"}
    fewer = altered(TOPIC_CONFIGS, after, [AlterConfigOp("cleanup.policy", Operation.SUBTRACT, "delete")])
    assert fewer["cleanup.policy"] == "compact"
    assert current == {"cleanup.policy": "delete", "retention.ms": "5"}


def test_appending_begins_with_the_default() -> None:
    after = altered(TOPIC_CONFIGS, {}, [AlterConfigOp("cleanup.policy", Operation.APPEND, "compact")])
    assert after == {"cleanup.policy": "delete,compact"}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (AlterConfigOp("retention.ms", Operation.APPEND, "1"), "not a list"),
        (AlterConfigOp("no.such.config", Operation.SUBTRACT, "1"), "not a list"),
        (AlterConfigOp("retention.ms", 9, "1"), "no operation 9"),
        (AlterConfigOp("retention.ms", Operation.SET), "needs a value"),
    ],
)
def test_changes_that_cannot_be(change: AlterConfigOp, told: str) -> None:
    with pytest.raises(InvalidConfig, match=told):
        altered(TOPIC_CONFIGS, {}, [change])


def test_a_config_changes_once_per_request() -> None:
    with pytest.raises(InvalidConfig, match="twice"):
        altered(
            TOPIC_CONFIGS, {}, [AlterConfigOp("a", Operation.DELETE), AlterConfigOp("a", Operation.DELETE)]
        )


@given(st.sampled_from(sorted(TOPIC_CONFIGS)), st.text(max_size=12))
def test_any_text_is_a_value_or_refused(name: str, text: str) -> None:
    """What is accepted can be used, whatever it was."""
    try:
        checked = check_topic({name: text})
    except InvalidConfig:
        return
    configs = BrokerConfigs()
    configs.set_topic("t", checked)
    assert configs.settings("t").min_insync_replicas >= 1
