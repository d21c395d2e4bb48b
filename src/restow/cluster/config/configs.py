"""Config values: their sources and their descriptions. `changes.py` checks writes.

    a topic's own ► this broker's, dynamic ► all brokers', dynamic ► the broker's file ► the default

`BrokerConfigs` holds all of these for one broker. `ConfigStore` feeds it from the store.
"""

from __future__ import annotations

import logging
from enum import IntEnum
from functools import cache
from itertools import dropwhile
from typing import TYPE_CHECKING, NamedTuple

from restow._frozen import frozen
from restow.cluster.config.table import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigType,
    Definition,
    Dynamic,
    InvalidConfig,
    Synonym,
    Value,
)
from restow.cluster.log import LogConfig
from restow.cluster.replication.replica_selection import LEADER_SELECTOR, RACK_AWARE_SELECTOR
from restow.cluster.replication.values import ReplicationConfig
from restow.wire.batches import CREATE_TIME, LOG_APPEND_TIME
from restow.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

log = logging.getLogger(__name__)

_STAND_TOGETHER = {
    each.name: tuple(it.name for it in definition.synonyms)
    for definition in TOPIC_CONFIGS.values()
    for each in definition.synonyms
}
"""Broker configs that state the same value in other units, by each name."""
_SYNONYMS = {name: tuple(it.name for it in each.synonyms) for name, each in TOPIC_CONFIGS.items()}
"""The broker configs that state the default of a topic config, the nearest first."""
_OF_TOPICS = frozenset(name for names in _SYNONYMS.values() for name in names)
_COMPRESSIONS = {"uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}
"""By compression.type; `producer` is not among them."""


class ConfigSource(IntEnum):
    """Source of a value, with DescribeConfigs' numbers."""

    TOPIC = 1
    BROKER = 2
    ALL_BROKERS = 3
    FILE = 4
    DEFAULT = 5


class Stated(NamedTuple):
    """A value and its source, and the broker config's name if it comes from there."""

    name: str
    value: str | None
    source: ConfigSource


class ConfigEntry(NamedTuple):
    """A config as DescribeConfigs shows it."""

    name: str
    value: str | None
    source: ConfigSource
    type: ConfigType
    read_only: bool
    synonyms: tuple[Stated, ...]
    """All names that state a value, in whatever unit; as in Kafka, the list starts at the nearest one."""
    sensitive: bool = False


@frozen
class TopicSettings:
    """A topic's configs as the broker uses them."""

    log: LogConfig
    min_insync_replicas: int
    unclean_leader_election: bool
    throttled_leaders: tuple[str, ...]
    """`partition:broker`, or `*` for all."""
    throttled_followers: tuple[str, ...]


class BrokerConfigs:
    """All configs that apply on one broker."""

    def __init__(self, file: Mapping[str, str] | None = None) -> None:
        """`file` holds the broker's start configs. Unknown names are kept, unread."""
        self._file = dict(file or {})
        for name, text in self._file.items():
            if name in BROKER_CONFIGS:
                BROKER_CONFIGS[name].parse(text)
        self._all_brokers: dict[str, str] = {}
        self._broker: dict[str, str] = {}
        self._topics: dict[str, dict[str, str]] = {}
        self._settings: dict[str, TopicSettings] = {}
        self._defaults: dict[str, Value] = {}
        """The values that topics have unless they state others; empty if they must be read anew."""
        self._values: dict[str, Value | None] = {}
        """The broker's values that were asked for."""
        self._described: tuple[ConfigEntry, ...] = ()
        """All configs of this broker; empty if they must be put together anew."""

    # Values from the store. Invalid ones are logged and ignored, because any tool may have written them.

    def set_broker(self, values: Mapping[str, str]) -> None:
        """Set this broker's dynamic configs."""
        self._broker = self._changed(self._broker, values)

    def set_all_brokers(self, values: Mapping[str, str]) -> None:
        """Set the dynamic configs of all brokers."""
        self._all_brokers = self._changed(self._all_brokers, values)

    def set_topic(self, topic: str, values: Mapping[str, str]) -> None:
        """Set the topic's configs."""
        self._topics[topic] = _readable(TOPIC_CONFIGS, values)
        self._settings.pop(topic, None)

    def drop_topic(self, topic: str) -> None:
        """Forget the topic."""
        self._topics.pop(topic, None)
        self._settings.pop(topic, None)

    # Effective values

    def value(self, name: str) -> Value | None:
        """Return the broker's value of a config; None if it has none."""
        if name not in self._values:
            definition = BROKER_CONFIGS[name]
            text = next(self._stated_by_broker(definition)).value
            self._values[name] = None if text is None else definition.parse(text)
        return self._values[name]

    def integer(self, name: str) -> int:
        """Return the broker's value of a numeric config."""
        value = self.value(name)
        if not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}, not a whole number")
        return value

    @property
    def delete_topic_enable(self) -> bool:
        return bool(self.value("delete.topic.enable"))

    def settings(self, topic: str) -> TopicSettings:
        """Return the topic's settings, cached until something changes."""
        known = self._settings.get(topic)
        if known is None:
            known = self._settings[topic] = self._put_together(self._topics.get(topic, {}))
        return known

    def log_config(self, topic: str) -> LogConfig:
        """Return the settings of the topic's logs."""
        return self.settings(topic).log

    def min_insync_replicas(self, topic: str) -> int:
        return self.settings(topic).min_insync_replicas

    def replication(self) -> ReplicationConfig:
        """Return the broker's replication settings."""
        return ReplicationConfig(
            lag_time_max_ms=self.integer("replica.lag.time.max.ms"),
            fetch_wait_max_ms=self.integer("replica.fetch.wait.max.ms"),
            fetch_min_bytes=self.integer("replica.fetch.min.bytes"),
            fetch_max_bytes=self.integer("replica.fetch.max.bytes"),
            fetch_response_max_bytes=self.integer("replica.fetch.response.max.bytes"),
            fetch_backoff_ms=self.integer("replica.fetch.backoff.ms"),
            checkpoint_interval_ms=self.integer("replica.high.watermark.checkpoint.interval.ms"),
            session_slots=self.integer("max.incremental.fetch.session.cache.slots"),
            reads_by_rack=self._reads_by_rack(),
        )

    def _reads_by_rack(self) -> bool:
        """Return whether consumers read from replicas in their rack; only Kafka's own selectors are known."""
        selector = self.value("replica.selector.class")
        if selector not in (None, "", LEADER_SELECTOR, RACK_AWARE_SELECTOR):
            raise InvalidConfig(
                f"replica.selector.class must be {RACK_AWARE_SELECTOR} or {LEADER_SELECTOR}, not {selector!r}"
            )
        return selector == RACK_AWARE_SELECTOR

    def _put_together(self, own: Mapping[str, str]) -> TopicSettings:
        if not self._defaults:
            self._defaults = {
                name: each.parse(next(self._stated_for_topic(each, {})).value or "")
                for name, each in TOPIC_CONFIGS.items()
            }
        stated = {name: TOPIC_CONFIGS[name].parse(text) for name, text in own.items()}
        return _settings_of(self._defaults | stated)

    def _changed(self, before: dict[str, str], values: Mapping[str, str]) -> dict[str, str]:
        """Return the broker's new configs, and forget what follows from those that differ."""
        found = _readable(BROKER_CONFIGS, values)
        if changed := found.items() ^ before.items():
            self._values, self._described = {}, ()
            if any(name in _OF_TOPICS for name, _ in changed):
                self._settings, self._defaults = {}, {}
        return found

    # Descriptions

    def describe_topic(self, topic: str, names: Iterable[str] | None = None) -> tuple[ConfigEntry, ...]:
        """Return a topic's configs: all, or the named ones that exist."""
        return self._describe_topic(self._topics.get(topic, {}), names)

    def describe_new_topic(self, own: Mapping[str, str]) -> tuple[ConfigEntry, ...]:
        """Return the description of a new topic with these configs."""
        return self._describe_topic(own, None)

    def _describe_topic(self, own: Mapping[str, str], names: Iterable[str] | None) -> tuple[ConfigEntry, ...]:
        stated = self._broker.keys() | self._all_brokers.keys() | self._file.keys()
        return tuple(
            _topic_default(each.name)
            if each.name not in own and stated.isdisjoint(_SYNONYMS[each.name])
            else _entry(
                each,
                next(self._stated_for_topic(each, own)).value,
                (
                    *((Stated(each.name, own[each.name], ConfigSource.TOPIC),) if each.name in own else ()),
                    *self._shown(_SYNONYMS[each.name]),
                ),
                read_only=False,
            )
            for each in _chosen(TOPIC_CONFIGS, names)
        )

    def describe_broker(self, names: Iterable[str] | None = None) -> tuple[ConfigEntry, ...]:
        """Return this broker's configs: all, or the named ones that exist."""
        if names is None:
            if not self._described:
                self._described = self._describe_broker(None)
            return self._described
        return self._describe_broker(names)

    def _describe_broker(self, names: Iterable[str] | None) -> tuple[ConfigEntry, ...]:
        stated = self._broker.keys() | self._all_brokers.keys() | self._file.keys()
        return tuple(
            _broker_default(each.name)
            if stated.isdisjoint(_STAND_TOGETHER.get(each.name, (each.name,)))
            else _entry(
                each,
                next(self._stated_by_broker(each)).value,
                self._shown(_STAND_TOGETHER.get(each.name, (each.name,)), each.name),
                read_only=each.dynamic is Dynamic.NEVER,
            )
            for each in _chosen(BROKER_CONFIGS, names)
        )

    def describe_all_brokers(self, names: Iterable[str] | None = None) -> tuple[ConfigEntry, ...]:
        """Return the dynamic configs of all brokers."""
        return tuple(
            _entry(
                each,
                self._all_brokers[each.name],
                (Stated(each.name, self._all_brokers[each.name], ConfigSource.ALL_BROKERS),),
                read_only=False,
            )
            for each in _chosen(BROKER_CONFIGS, names)
            if each.name in self._all_brokers
        )

    def _shown(self, names: tuple[str, ...], nearest: str | None = None) -> tuple[Stated, ...]:
        """Return the values that these names state, from `nearest` on, by default the first."""
        stated = [
            Stated(name, layer[name], source)
            for source, layer in self._layers()
            for name in names
            if name in layer
        ]
        stated += _defaults_of(names)
        return _from(nearest or next(iter(names), None), stated)

    def _layers(self) -> tuple[tuple[ConfigSource, Mapping[str, str]], ...]:
        return (
            (ConfigSource.BROKER, self._broker),
            (ConfigSource.ALL_BROKERS, self._all_brokers),
            (ConfigSource.FILE, self._file),
        )

    def _stated_by_broker(self, definition: Definition) -> Iterator[Stated]:
        name = definition.name
        for source, layer in self._layers():
            if name in layer:
                yield Stated(name, layer[name], source)
        yield Stated(name, definition.default, ConfigSource.DEFAULT)

    def _stated_for_topic(self, definition: Definition, own: Mapping[str, str]) -> Iterator[Stated]:
        if definition.name in own:
            yield Stated(definition.name, own[definition.name], ConfigSource.TOPIC)
        for source, layer in self._layers():
            for synonym in definition.synonyms:
                if synonym.name in layer:
                    yield Stated(synonym.name, _in_units(synonym, layer[synonym.name]), source)
        named = definition.synonyms[-1].name if definition.synonyms else definition.name
        yield Stated(named, definition.default, ConfigSource.DEFAULT)


def _readable(definitions: Mapping[str, Definition], values: Mapping[str, str]) -> dict[str, str]:
    kept = {}
    for name, text in values.items():
        definition = definitions.get(name)
        if definition is None:
            continue
        try:
            definition.parse(text)
        except InvalidConfig as error:
            log.warning("ignored a config in the store: %s", error)
        else:
            kept[name] = text
    return kept


def _chosen(definitions: Mapping[str, Definition], names: Iterable[str] | None) -> Iterator[Definition]:
    for name in definitions if names is None else dict.fromkeys(names):
        if name in definitions:
            yield definitions[name]


def _entry(
    definition: Definition, value: str | None, shown: tuple[Stated, ...], *, read_only: bool
) -> ConfigEntry:
    source = shown[0].source if shown else ConfigSource.DEFAULT
    return ConfigEntry(definition.name, value, source, definition.type, read_only, shown)


def _defaults_of(names: tuple[str, ...]) -> list[Stated]:
    defaults = [(name, BROKER_CONFIGS[name].default) for name in names]
    return [Stated(name, text, ConfigSource.DEFAULT) for name, text in defaults if text is not None]


def _from(nearest: str | None, stated: list[Stated]) -> tuple[Stated, ...]:
    return tuple(dropwhile(lambda it: it.name != nearest, stated))


@cache
def _topic_default(name: str) -> ConfigEntry:
    """Return the description of a config that is set neither for a topic nor for the broker."""
    definition, names = TOPIC_CONFIGS[name], _SYNONYMS[name]
    shown = _from(next(iter(names), None), _defaults_of(names))
    return _entry(definition, definition.default, shown, read_only=False)


@cache
def _broker_default(name: str) -> ConfigEntry:
    """Return the description of a broker config that is set nowhere, not in other units either."""
    definition = BROKER_CONFIGS[name]
    shown = _from(name, _defaults_of(_STAND_TOGETHER.get(name, (name,))))
    return _entry(definition, definition.default, shown, read_only=definition.dynamic is Dynamic.NEVER)


def _in_units(synonym: Synonym, text: str) -> str:
    """Convert to the topic's unit: 168 hours are 604,800,000 ms; -1 is no limit in any unit."""
    if synonym.factor == 1:
        return text
    number = int(text)
    return str(number * synonym.factor if number >= 0 else number)


def _settings_of(found: Mapping[str, Value]) -> TopicSettings:
    def whole(name: str) -> int:
        value = found[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} is {value!r}, not a whole number")
        return value

    def parts(name: str) -> tuple[str, ...]:
        value = found[name]
        return value if isinstance(value, tuple) else ()

    policy = parts("cleanup.policy")
    ratio = found["min.cleanable.dirty.ratio"]
    by_append = found["message.timestamp.type"] == "LogAppendTime"
    return TopicSettings(
        log=LogConfig(
            segment_bytes=whole("segment.bytes"),
            segment_ms=whole("segment.ms"),
            retention_ms=whole("retention.ms"),
            retention_bytes=whole("retention.bytes"),
            cleanup_delete="delete" in policy,
            cleanup_compact="compact" in policy,
            flush_messages=whole("flush.messages"),
            flush_ms=whole("flush.ms"),
            index_interval_bytes=whole("index.interval.bytes"),
            timestamp_type=LOG_APPEND_TIME if by_append else CREATE_TIME,
            timestamp_before_max_ms=whole("message.timestamp.before.max.ms"),
            timestamp_after_max_ms=whole("message.timestamp.after.max.ms"),
            max_message_bytes=whole("max.message.bytes"),
            compression=_COMPRESSIONS.get(str(found["compression.type"])),
            min_cleanable_dirty_ratio=float(ratio) if isinstance(ratio, (int, float)) else 0.5,
            min_compaction_lag_ms=whole("min.compaction.lag.ms"),
            max_compaction_lag_ms=whole("max.compaction.lag.ms"),
            delete_retention_ms=whole("delete.retention.ms"),
        ),
        min_insync_replicas=whole("min.insync.replicas"),
        unclean_leader_election=bool(found["unclean.leader.election.enable"]),
        throttled_leaders=parts("leader.replication.throttled.replicas"),
        throttled_followers=parts("follower.replication.throttled.replicas"),
    )
