"""Config changes: applies and checks them."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.config.table import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    ConfigType,
    Definition,
    Dynamic,
    InvalidConfig,
    Value,
)
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_THROTTLED = re.compile(r"\d+:\d+", re.ASCII)
_THROTTLE_LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


class InvalidChange(InvalidConfig):
    """A contradictory change, or one that a broker cannot take. Kafka answers INVALID_REQUEST to both."""

    code = ErrorCode.INVALID_REQUEST


class Operation(IntEnum):
    """An operation of IncrementalAlterConfigs."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class AlterConfigOp(NamedTuple):
    """One step of IncrementalAlterConfigs. DELETE needs no value."""

    name: str
    operation: int
    value: str | None = None


def check_topic(values: Mapping[str, str | None]) -> dict[str, str]:
    """Check a topic's configs and return them. Raises InvalidConfig."""
    return _checked(TOPIC_CONFIGS, values, "topic")


def check_broker(values: Mapping[str, str | None], *, for_all: bool) -> dict[str, str]:
    """Check dynamic configs of one broker or of all, and return them."""
    try:
        checked = _checked(BROKER_CONFIGS, values, "broker")
    except InvalidConfig as error:
        raise InvalidChange(str(error)) from error
    for name in checked:
        dynamic = BROKER_CONFIGS[name].dynamic
        if dynamic is Dynamic.NEVER:
            raise InvalidChange(
                f"{name} cannot change while a broker runs: set it where the broker is started"
            )
        if dynamic is Dynamic.PER_BROKER and for_all:
            raise InvalidChange(f"{name} is a config of one broker: name the broker")
    return checked


def altered(
    definitions: Mapping[str, Definition], current: Mapping[str, str], changes: Sequence[AlterConfigOp]
) -> dict[str, str]:
    """Apply the changes and return the result, still to be checked. Raises InvalidConfig."""
    after = dict(current)
    if len({change.name for change in changes}) != len(changes):
        raise InvalidChange("a config is changed twice in one request: change it once")
    for name, number, value in changes:
        operation = _operation(name, number)
        definition = definitions.get(name)
        if operation is Operation.DELETE:
            after.pop(name, None)
            continue
        if value is None:
            raise InvalidChange(f"{name} needs a value")
        if operation is Operation.SET:
            after[name] = value
            continue
        if definition is None or definition.type is not ConfigType.LIST:
            raise InvalidConfig(f"{name} is not a list, so nothing can be appended to it or taken from it")
        present = _parts(after.get(name, definition.default or ""))
        given = _parts(value)
        if operation is Operation.APPEND:
            kept = [*present, *(part for part in given if part not in present)]
        else:
            kept = [part for part in present if part not in given]
        after[name] = ",".join(kept)
    return after


def _operation(name: str, number: int) -> Operation:
    try:
        return Operation(number)
    except ValueError:
        raise InvalidChange(f"{name}: there is no operation {number}") from None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _checked(
    definitions: Mapping[str, Definition], values: Mapping[str, str | None], of: str
) -> dict[str, str]:
    checked: dict[str, str] = {}
    parsed: dict[str, Value] = {}
    for name, text in values.items():
        definition = definitions.get(name)
        if definition is None:
            raise InvalidConfig(f"there is no {of} config {name!r}")
        if text is None:
            raise InvalidConfig(f"{name} needs a value; leave it out to have the default")
        parsed[name] = definition.parse(text)
        checked[name] = text
    for name in _THROTTLE_LISTS:
        _check_throttled(name, parsed.get(name, ()))
    least, most = parsed.get("min.compaction.lag.ms", 0), parsed.get("max.compaction.lag.ms", 2**63 - 1)
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise InvalidConfig(
            f"min.compaction.lag.ms is {least}, more than max.compaction.lag.ms, which is {most}"
        )
    return checked


def _check_throttled(name: str, value: Value) -> None:
    if isinstance(value, tuple) and value not in ((), ("*",)):
        for part in value:
            if not _THROTTLED.fullmatch(part):
                raise InvalidConfig(f"{name} must be * or partition:broker,partition:broker, not {part!r}")
