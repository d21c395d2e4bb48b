"""Our config tables against Kafka's: names, types, defaults, limits, synonyms, update modes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from restow.cluster.config.table import BROKER_CONFIGS, TOPIC_CONFIGS, ConfigType, Dynamic, InvalidConfig

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway, JavaObject

    from restow.cluster.config.table import Definition

pytestmark = pytest.mark.jvm

LATER = {
    "cordoned.log.dirs",
    "group.consumer.assignment.interval.ms",
    "group.consumer.assignors",
    "group.consumer.max.assignment.interval.ms",
    "group.consumer.migration.policy",
    "group.consumer.min.assignment.interval.ms",
}
"""Configs that only Kafka 4 has, or that have other values there."""
OF_3_9 = {name: each for name, each in BROKER_CONFIGS.items() if name not in LATER}

OTHER_DEFAULTS = {
    "auto.leader.rebalance.enable": ("true", "false"),  # automatic leader rebalancing is off by default
    "log.dir": ("/tmp/kafka-logs", None),  # noqa: S108 (a broker has no folder but those it is given)
}
"""Defaults that differ on purpose: Kafka's and ours."""
FIXED_HERE = {
    "advertised.listeners",
    "listener.security.protocol.map",
    "listeners",
    "sasl.enabled.mechanisms",
    "sasl.mechanism.inter.broker.protocol",
}
"""Configs that a running Kafka broker can change and ours cannot."""
CHECKED_LATER = {
    "default.replication.factor",
    "group.initial.rebalance.delay.ms",
    "group.max.session.timeout.ms",
    "group.min.session.timeout.ms",
    "leader.imbalance.per.broker.percentage",
    "log.flush.interval.ms",
    "log.flush.scheduler.interval.ms",
    "log.retention.ms",
    "log.roll.jitter.ms",
    "log.roll.ms",
}
"""Values that Kafka's definitions allow, but its later checks or common sense do not."""
PROBES = ("-9223372036854775808", "-2", "-1", "0", "1", "3", "13", "14", "0.5", "1.5", "2147483648", "", "x")
WORDS = (
    "true",
    "FALSE",
    "compact,delete",
    "delete",
    "CreateTime",
    "createtime",
    "gzip",
    "none",
    "*",
    "0:1",
    "x:1",
)


class Kafka(NamedTuple):
    """A config as Kafka defines it."""

    key: JavaObject
    kind: str
    default: str | None

    def takes(self, gateway: JavaGateway, name: str, text: str) -> bool:
        """Return whether Kafka parses the text and its validator accepts it."""
        from py4j.protocol import Py4JJavaError

        definition = gateway.jvm.org.apache.kafka.common.config.ConfigDef
        kind = _field(self.key, "type")
        validator = _field(self.key, "validator")
        try:
            value = definition.parseType(name, text, kind)
            if validator is not None:
                validator.ensureValid(name, value)
        except Py4JJavaError:
            return False
        return True


def _field(key: JavaObject, name: str) -> JavaObject:
    return key.getClass().getField(name).get(key)


def described(gateway: JavaGateway, key: JavaObject) -> Kafka:
    kind, default = _field(key, "type"), _field(key, "defaultValue")
    convert = gateway.jvm.org.apache.kafka.common.config.ConfigDef.convertToString
    return Kafka(key, kind.name(), convert(default, kind) if key.hasDefault() else None)


@pytest.fixture(scope="module")
def topic_configs(gateway: JavaGateway) -> dict[str, Kafka]:
    config = gateway.jvm.org.apache.kafka.storage.internals.log.LogConfig
    keys = config.configDefCopy().configKeys()
    return {str(name): described(gateway, keys.get(name)) for name in config.configNames()}


@pytest.fixture(scope="module")
def broker_configs(gateway: JavaGateway) -> dict[str, Kafka]:
    """Return the configs of the configuration file, and the dynamic-only ones."""
    jvm = gateway.jvm
    found = {}
    for definition in (
        jvm.kafka.server.KafkaConfig.configDef(),
        jvm.org.apache.kafka.server.config.QuotaConfigs.brokerQuotaConfigs(),
    ):
        for name, key in definition.configKeys().items():
            if str(name) in OF_3_9:
                found[str(name)] = described(gateway, key)
    return found


def test_topic_configs_equal_those_of_kafka(topic_configs: dict[str, Kafka]) -> None:
    ours = {name: (each.type.name, each.default) for name, each in TOPIC_CONFIGS.items()}
    theirs = {name: (each.kind, each.default) for name, each in topic_configs.items() if name in ours}
    assert ours == theirs


def test_broker_configs_equal_those_of_kafka(broker_configs: dict[str, Kafka]) -> None:
    ours = {name: (each.type.name, each.default) for name, each in OF_3_9.items()}
    theirs = {name: (each.kind, each.default) for name, each in broker_configs.items()}
    for name, (default, changed) in OTHER_DEFAULTS.items():
        assert theirs[name][1] == default
        theirs[name] = (theirs[name][0], changed)
    assert ours == theirs


def test_synonyms_equal_those_of_kafka(gateway: JavaGateway) -> None:
    """Their order and units, too."""
    synonyms = gateway.jvm.org.apache.kafka.server.config.ServerTopicConfigSynonyms
    theirs = {
        str(entry.getKey()): [
            (str(each.name()), str(each.converter().apply("2"))) for each in entry.getValue()
        ]
        for entry in synonyms.ALL_TOPIC_CONFIG_SYNONYMS.entrySet()
    }
    ours = {
        name: [(each.name, str(2 * each.factor)) for each in definition.synonyms]
        for name, definition in TOPIC_CONFIGS.items()
    }
    assert ours == {name: theirs.get(name, []) for name in ours}


def test_dynamic_configs_equal_those_of_kafka(gateway: JavaGateway) -> None:
    dynamic = _scala_object(gateway, "kafka.server.DynamicBrokerConfig$")
    everything = set(dynamic.AllDynamicConfigs().mkString(",").split(","))
    of_one = set(dynamic.PerBrokerConfigs().mkString(",").split(","))
    rates = {
        str(each)
        for each in gateway.jvm.org.apache.kafka.server.config.QuotaConfigs.brokerQuotaConfigs().names()
    }
    theirs = {}
    for name in OF_3_9:
        if name in rates or name in of_one:
            theirs[name] = Dynamic.PER_BROKER
        else:
            theirs[name] = Dynamic.FOR_ALL if name in everything else Dynamic.NEVER
    for name in FIXED_HERE:
        assert theirs[name] is Dynamic.PER_BROKER
        theirs[name] = Dynamic.NEVER
    assert {name: each.dynamic for name, each in OF_3_9.items()} == theirs


def test_limits_equal_those_of_kafka(
    gateway: JavaGateway, topic_configs: dict[str, Kafka], broker_configs: dict[str, Kafka]
) -> None:
    """Values that Kafka refuses are refused here; others are accepted, unless its later checks refuse."""
    wrong = []
    for ours, theirs in ((TOPIC_CONFIGS, topic_configs), (OF_3_9, broker_configs)):
        for name, definition in ours.items():
            for text in _probes(definition):
                here, there = _takes(definition, text), theirs[name].takes(gateway, name, text)
                if here != there and not (there and name in CHECKED_LATER):
                    wrong.append(f"{name}={text!r}: {'taken' if here else 'refused'} here, not so by Kafka")
    assert not wrong, "\n".join(wrong)


def test_page_lists_missing_topic_configs(topic_configs: dict[str, Kafka]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "unsupported.md").read_text()
    _, heading, section = page.partition("\n## Configs\n")
    assert heading
    named = set(re.findall(r"`([a-z0-9.]+)`", section.partition("\n## ")[0]))
    assert topic_configs.keys() - TOPIC_CONFIGS.keys() == {name for name in named if name in topic_configs}
    assert OTHER_DEFAULTS.keys() <= named
    assert named >= FIXED_HERE


def _probes(definition: Definition) -> tuple[str, ...]:
    is_text = definition.type in (ConfigType.STRING, ConfigType.LIST, ConfigType.BOOLEAN)
    return WORDS if is_text else PROBES


def _takes(definition: Definition, text: str) -> bool:
    from restow.cluster.config.changes import check_topic

    try:
        if definition.name in TOPIC_CONFIGS and definition is TOPIC_CONFIGS[definition.name]:
            check_topic({definition.name: text})
        else:
            definition.parse(text)
    except InvalidConfig:
        return False
    return True


def _scala_object(gateway: JavaGateway, name: str) -> JavaObject:
    return gateway.jvm.java.lang.Class.forName(name).getField("MODULE$").get(None)
