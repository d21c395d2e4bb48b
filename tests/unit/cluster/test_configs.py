"""Configs: valid values, their sources, and the effect of changes."""

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


def test_config_table_has_valid_defaults() -> None:
    for definition in (*TOPIC_CONFIGS.values(), *BROKER_CONFIGS.values()):
        if definition.default is not None:
            definition.parse(definition.default)


def test_topic_config_synonyms_are_broker_configs() -> None:
    named = [synonym.name for each in TOPIC_CONFIGS.values() for synonym in each.synonyms]
    assert set(named) <= set(BROKER_CONFIGS)


def test_defaults_match_log_config_and_replication_config() -> None:
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
def test_check_refuses_invalid_value_with_a_message(name: str, value: str | None, told: str) -> None:
    with pytest.raises(InvalidConfig, match=told) as refused:
        check_topic({name: value})
    assert name in str(refused.value)


def test_check_refuses_min_compaction_lag_above_max() -> None:
    with pytest.raises(InvalidConfig, match=r"more than max\.compaction\.lag\.ms"):
        check_topic({"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"})


@pytest.mark.parametrize("value", ["", "*", "0:1", "0:1, 2:3"])
def test_check_accepts_throttled_replicas_lists(value: str) -> None:
    assert check_topic({"follower.replication.throttled.replicas": value})


def test_nearest_source_wins_and_all_synonyms_are_described() -> None:
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


def test_unlimited_retention_hours_mean_unlimited_ms() -> None:
    assert BrokerConfigs({"log.retention.hours": "-1"}).log_config("t").retention_ms == -1


def test_broker_configs_ignore_invalid_values_in_the_store() -> None:
    configs = BrokerConfigs()
    configs.set_topic("t", {"retention.ms": "soon", "segment.ms": "5", "from.another.world": "1"})
    assert configs.log_config("t") == LogConfig(segment_ms=5)


def test_broker_configs_refuse_invalid_value_in_the_file() -> None:
    with pytest.raises(InvalidConfig, match=r"num\.partitions"):
        BrokerConfigs({"num.partitions": "many"})


def test_describe_broker_marks_read_only_configs() -> None:
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


def test_describe_new_topic_shows_its_own_configs() -> None:
    entries = {entry.name: entry for entry in BrokerConfigs().describe_new_topic({"segment.ms": "5"})}
    assert set(entries) == set(TOPIC_CONFIGS)
    assert (entries["segment.ms"].value, entries["segment.ms"].source) == ("5", ConfigSource.TOPIC)
    assert entries["retention.ms"].source is ConfigSource.DEFAULT


def test_check_broker_refuses_read_only_configs() -> None:
    with pytest.raises(InvalidConfig, match="cannot change while a broker runs"):
        check_broker({"broker.id": "1"}, for_all=False)
    with pytest.raises(InvalidConfig, match="name the broker"):
        check_broker({"leader.replication.throttled.rate": "1"}, for_all=True)
    assert check_broker({"leader.replication.throttled.rate": "1"}, for_all=False)
    assert check_broker({"min.insync.replicas": "2"}, for_all=True)


def test_incremental_changes_add_up() -> None:
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


def test_append_starts_from_the_default_of_an_unset_list() -> None:
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
def test_altered_refuses_invalid_changes(change: AlterConfigOp, told: str) -> None:
    with pytest.raises(InvalidConfig, match=told):
        altered(TOPIC_CONFIGS, {}, [change])


def test_altered_refuses_two_changes_of_one_config() -> None:
    with pytest.raises(InvalidConfig, match="twice"):
        altered(
            TOPIC_CONFIGS, {}, [AlterConfigOp("a", Operation.DELETE), AlterConfigOp("a", Operation.DELETE)]
        )


@given(st.sampled_from(sorted(TOPIC_CONFIGS)), st.text(max_size=12))
def test_parse_accepts_or_refuses_any_text(name: str, text: str) -> None:
    """An accepted value can be used."""
    try:
        checked = check_topic({name: text})
    except InvalidConfig:
        return
    configs = BrokerConfigs()
    configs.set_topic("t", checked)
    assert configs.settings("t").min_insync_replicas >= 1
