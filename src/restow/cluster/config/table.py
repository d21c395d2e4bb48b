"""The supported topic and broker configs: name, type, default, limits.

Most topic configs fall back to a broker config. Names, defaults and limits are Kafka 3.9's.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class InvalidConfig(RestowError):
    """An unknown config, or an invalid value."""

    code = ErrorCode.INVALID_CONFIG


class ConfigType(IntEnum):
    """Types, with DescribeConfigs' numbers."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7


class Dynamic(IntEnum):
    """Whether a broker config can change at run time, and for which brokers."""

    NEVER = 0
    PER_BROKER = 1
    FOR_ALL = 2


Value: TypeAlias = bool | int | float | str | tuple[str, ...]


class Synonym(NamedTuple):
    """A broker config that a topic config falls back to, and the factor between their units."""

    name: str
    factor: int = 1


class Definition(NamedTuple):
    """One config."""

    name: str
    type: ConfigType
    default: str | None
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] = ()
    synonyms: tuple[Synonym, ...] = ()
    dynamic: Dynamic = Dynamic.NEVER

    def parse(self, text: str) -> Value:
        """Return the value, or raise InvalidConfig."""
        text = text.strip()
        value = self._read(text)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            low = value if self.low is None else self.low
            high = value if self.high is None else self.high
            if not low <= value <= high:
                limits = f"at least {self.low:.15g}" + (f" and at most {self.high:g}" if self.high else "")
                raise InvalidConfig(f"{self.name} must be {limits}, not {text}")
        elif self.choices:
            for each in value if isinstance(value, tuple) else (value,):
                if each not in self.choices:
                    raise InvalidConfig(f"{self.name} must be of {', '.join(self.choices)}, not {text!r}")
        return value

    def _read(self, text: str) -> Value:
        kind = self.type
        if kind is ConfigType.BOOLEAN:
            if text.lower() not in ("true", "false"):
                raise InvalidConfig(f"{self.name} must be true or false, not {text!r}")
            return text.lower() == "true"
        if kind is ConfigType.LIST:
            return tuple(part.strip() for part in text.split(",")) if text else ()
        if kind is ConfigType.STRING:
            return text
        try:
            return float(text) if kind is ConfigType.DOUBLE else _integer(text, _BITS[kind])
        except ValueError:
            raise InvalidConfig(f"{self.name} must be a number of type {kind.name}, not {text!r}") from None


_BITS = {ConfigType.SHORT: 16, ConfigType.INT: 32, ConfigType.LONG: 64}
_DECIMAL = re.compile(r"[+-]?\d+", re.ASCII)
_FOREVER = str(2**63 - 1)
_WEEK_MS = str(7 * 24 * 60 * 60 * 1000)
_MINUTE_MS = 60 * 1000
_HOUR_MS = 60 * _MINUTE_MS


def _integer(text: str, bits: int) -> int:
    if not _DECIMAL.fullmatch(text) or not -(1 << bits - 1) <= int(text) < 1 << bits - 1:
        raise ValueError(text)
    return int(text)


def _topic(
    name: str,
    kind: ConfigType,
    default: str,
    stands_in: str | tuple[Synonym, ...] = (),
    *,
    low: float | None = None,
    high: float | None = None,
    choices: tuple[str, ...] = (),
) -> Definition:
    synonyms = (Synonym(stands_in),) if isinstance(stands_in, str) else stands_in
    return Definition(name, kind, default, low, high, choices, synonyms, Dynamic.FOR_ALL)


_B, _S, _I, _L, _D, _LIST = (
    ConfigType.BOOLEAN,
    ConfigType.STRING,
    ConfigType.INT,
    ConfigType.LONG,
    ConfigType.DOUBLE,
    ConfigType.LIST,
)
_RETENTION = (
    Synonym("log.retention.ms"),
    Synonym("log.retention.minutes", _MINUTE_MS),
    Synonym("log.retention.hours", _HOUR_MS),
)
_ROLL = (Synonym("log.roll.ms"), Synonym("log.roll.hours", _HOUR_MS))
_JITTER = (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", _HOUR_MS))
_FLUSH = (Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms"))
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

TOPIC_CONFIGS: Mapping[str, Definition] = {
    each.name: each
    for each in (
        _topic("cleanup.policy", _LIST, "delete", "log.cleanup.policy", choices=("compact", "delete")),
        _topic("compression.type", _S, "producer", "compression.type", choices=_CODECS),
        _topic("delete.retention.ms", _L, "86400000", "log.cleaner.delete.retention.ms", low=0),
        _topic("file.delete.delay.ms", _L, "60000", "log.segment.delete.delay.ms", low=0),
        _topic("flush.messages", _L, _FOREVER, "log.flush.interval.messages", low=1),
        _topic("flush.ms", _L, _FOREVER, _FLUSH, low=0),
        _topic("follower.replication.throttled.replicas", _LIST, ""),
        _topic("index.interval.bytes", _I, "4096", "log.index.interval.bytes", low=0),
        _topic("leader.replication.throttled.replicas", _LIST, ""),
        _topic("max.compaction.lag.ms", _L, _FOREVER, "log.cleaner.max.compaction.lag.ms", low=1),
        _topic("max.message.bytes", _I, "1048588", "message.max.bytes", low=0),
        _topic("message.downconversion.enable", _B, "true", "log.message.downconversion.enable"),
        _topic("message.timestamp.after.max.ms", _L, _FOREVER, "log.message.timestamp.after.max.ms", low=0),
        _topic("message.timestamp.before.max.ms", _L, _FOREVER, "log.message.timestamp.before.max.ms", low=0),
        _topic(
            "message.timestamp.type",
            _S,
            "CreateTime",
            "log.message.timestamp.type",
            choices=("CreateTime", "LogAppendTime"),
        ),
        _topic("min.cleanable.dirty.ratio", _D, "0.5", "log.cleaner.min.cleanable.ratio", low=0, high=1),
        _topic("min.compaction.lag.ms", _L, "0", "log.cleaner.min.compaction.lag.ms", low=0),
        _topic("min.insync.replicas", _I, "1", "min.insync.replicas", low=1),
        _topic("preallocate", _B, "false", "log.preallocate"),
        _topic("retention.bytes", _L, "-1", "log.retention.bytes"),
        _topic("retention.ms", _L, _WEEK_MS, _RETENTION, low=-1),
        _topic("segment.bytes", _I, "1073741824", "log.segment.bytes", low=14),
        _topic("segment.index.bytes", _I, "10485760", "log.index.size.max.bytes", low=4),
        _topic("segment.jitter.ms", _L, "0", _JITTER, low=0),
        _topic("segment.ms", _L, _WEEK_MS, _ROLL, low=1),
        _topic("unclean.leader.election.enable", _B, "false", "unclean.leader.election.enable"),
    )
}


def _stand_ins() -> Iterator[Definition]:
    """Yield the broker configs that topics fall back to. Of several for one topic config, the first can
    change at run time, and the last has the default.
    """
    for topic in TOPIC_CONFIGS.values():
        last = len(topic.synonyms) - 1
        for place, (name, factor) in enumerate(topic.synonyms):
            default = str(int(topic.default or 0) // factor) if factor > 1 else topic.default
            limits = topic[3:6] if place == 0 or topic.low != -1 else (None, None, ())
            yield Definition(
                name,
                topic.type if factor == 1 else _I,
                default if place == last else None,
                *limits,
                dynamic=Dynamic.FOR_ALL if place == 0 else Dynamic.NEVER,
            )


def _static(name: str, kind: ConfigType, default: str | None, low: float | None = None) -> Definition:
    return Definition(name, kind, default, low)


def _rate(name: str) -> Definition:
    return Definition(name, _L, _FOREVER, 0, dynamic=Dynamic.PER_BROKER)


def _threads(name: str, default: int) -> Definition:
    """Return a size of one of Kafka's thread pools."""
    return Definition(name, _I, str(default), 1, dynamic=Dynamic.FOR_ALL)


_WITHOUT_EFFECT = (
    _threads("background.threads", 10),
    _threads("num.io.threads", 8),
    _threads("num.network.threads", 3),
    _threads("num.recovery.threads.per.data.dir", 1),
    Definition("num.replica.fetchers", _I, "1", dynamic=Dynamic.FOR_ALL),
    Definition("sasl.kerberos.min.time.before.relogin", _L, "60000", dynamic=Dynamic.PER_BROKER),
)
"""Configs that are stored and shown, because scripts and suites set them, and mean nothing here."""

_PROTOCOLS = "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT"

BROKER_CONFIGS: Mapping[str, Definition] = {
    each.name: each
    for each in (
        *_stand_ins(),
        *_WITHOUT_EFFECT,
        _static("advertised.listeners", _S, None),
        _static("alter.log.dirs.replication.quota.window.num", _I, "11", 1),
        _static("alter.log.dirs.replication.quota.window.size.seconds", _I, "1", 1),
        _static("auto.create.topics.enable", _B, "true"),
        _static("auto.leader.rebalance.enable", _B, "false"),
        _static("broker.id", _I, "-1"),
        _static("broker.rack", _S, None),
        _static("connection.failed.authentication.delay.ms", _I, "100", 0),
        _static("connections.max.idle.ms", _L, "600000"),
        _static("connections.max.reauth.ms", _L, "0"),
        _static("controlled.shutdown.enable", _B, "true"),
        Definition("cordoned.log.dirs", _LIST, "", dynamic=Dynamic.PER_BROKER),
        _static("default.replication.factor", _I, "1", 1),
        _static("delete.topic.enable", _B, "true"),
        _rate("follower.replication.throttled.rate"),
        _static("group.consumer.assignment.interval.ms", _I, "1000", 0),
        _static("group.consumer.assignors", _LIST, "uniform,range"),
        _static("group.consumer.heartbeat.interval.ms", _I, "5000", 1),
        _static("group.consumer.max.assignment.interval.ms", _I, "15000", 0),
        _static("group.consumer.max.heartbeat.interval.ms", _I, "15000", 1),
        _static("group.consumer.max.session.timeout.ms", _I, "60000", 1),
        _static("group.consumer.max.size", _I, "2147483647", 1),
        _static("group.consumer.migration.policy", _S, "bidirectional"),
        _static("group.consumer.min.assignment.interval.ms", _I, "0", 0),
        _static("group.consumer.min.heartbeat.interval.ms", _I, "5000", 1),
        _static("group.consumer.min.session.timeout.ms", _I, "45000", 1),
        _static("group.consumer.session.timeout.ms", _I, "45000", 1),
        _static("group.initial.rebalance.delay.ms", _I, "3000", 0),
        _static("group.max.session.timeout.ms", _I, "1800000", 0),
        _static("group.max.size", _I, "2147483647", 1),
        _static("group.min.session.timeout.ms", _I, "6000", 0),
        _static("inter.broker.listener.name", _S, None),
        _static("leader.imbalance.check.interval.seconds", _L, "300", 1),
        _static("leader.imbalance.per.broker.percentage", _I, "10", 0),
        _rate("leader.replication.throttled.rate"),
        _static("listener.security.protocol.map", _S, _PROTOCOLS),
        _static("listeners", _S, "PLAINTEXT://:9092"),
        Definition("log.cleaner.backoff.ms", _L, "15000", 0, dynamic=Dynamic.FOR_ALL),
        _static("log.dir", _S, None),
        _static("log.dirs", _S, None),
        _static("max.incremental.fetch.session.cache.slots", _I, "1000", 0),
        _static("max.request.partition.size.limit", _I, "2000", 1),
        _static("num.partitions", _I, "1", 1),
        _static("offset.metadata.max.bytes", _I, "4096"),
        _static("offsets.commit.timeout.ms", _I, "5000", 1),
        _static("offsets.retention.check.interval.ms", _L, "600000", 1),
        _static("offsets.retention.minutes", _I, "10080", 1),
        _static("offsets.topic.num.partitions", _I, "50", 1),
        _static("offsets.topic.replication.factor", ConfigType.SHORT, "3", 1),
        _static("offsets.topic.segment.bytes", _I, "104857600", 1),
        _static("quota.window.num", _I, "11", 1),
        _static("quota.window.size.seconds", _I, "1", 1),
        _rate("replica.alter.log.dirs.io.max.bytes.per.second"),
        _static("replica.fetch.backoff.ms", _I, "1000", 0),
        _static("replica.fetch.max.bytes", _I, "1048576", 0),
        _static("replica.fetch.min.bytes", _I, "1"),
        _static("replica.fetch.response.max.bytes", _I, "10485760", 0),
        _static("replica.fetch.wait.max.ms", _I, "500"),
        _static("replica.high.watermark.checkpoint.interval.ms", _L, "5000"),
        _static("replica.lag.time.max.ms", _L, "30000"),
        _static("replica.selector.class", _S, None),
        _static("replication.quota.window.num", _I, "11", 1),
        _static("replication.quota.window.size.seconds", _I, "1", 1),
        _static("sasl.enabled.mechanisms", _LIST, "GSSAPI"),
        _static("sasl.mechanism.inter.broker.protocol", _S, "GSSAPI"),
        Definition(
            "security.inter.broker.protocol",
            _S,
            "PLAINTEXT",
            choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        ),
        _static("socket.request.max.bytes", _I, "104857600", 1),
        _static("transaction.abort.timed.out.transaction.cleanup.interval.ms", _I, "10000", 1),
        _static("transaction.max.timeout.ms", _I, "900000", 1),
        Definition("transaction.partition.verification.enable", _B, "true", dynamic=Dynamic.FOR_ALL),
        _static("transaction.remove.expired.transaction.cleanup.interval.ms", _I, "3600000", 1),
        _static("transaction.state.log.min.isr", _I, "2", 1),
        _static("transaction.state.log.num.partitions", _I, "50", 1),
        _static("transaction.state.log.replication.factor", ConfigType.SHORT, "3", 1),
        _static("transaction.state.log.segment.bytes", _I, "104857600", 1),
        _static("transactional.id.expiration.ms", _I, "604800000", 1),
        _static("zookeeper.connect", _S, None),
        _static("zookeeper.session.timeout.ms", _I, "18000"),
    )
}
