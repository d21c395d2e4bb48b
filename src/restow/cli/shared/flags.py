"""Parsers of flags: broker lists, topic lists, names; and the largest numbers that they accept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.errors import InvalidBrokers, InvalidGroup, InvalidInput

if TYPE_CHECKING:
    from restow.model import Broker

# Larger than any real cluster, yet answered in seconds: a larger number is a typing error.
MAX_BROKERS = 10_000
MAX_PARTITIONS = 1_000_000
MAX_REPLICAS = 10_000_000
MAX_MEMBERS = 100_000
INT32_MAX = 2**31 - 1


def parse_brokers(text: str, racks: str | None = None) -> tuple[Broker, ...]:
    """Parse `0-5`, `0,1,2`, `0:a,1:b`, `0-2:a,3-5:b`, or any mixture. Brokers get `racks` in turn."""
    from restow.model import Broker

    found: list[Broker] = []
    for item in text.split(","):
        ids, colon, rack = item.strip().partition(":")
        if colon and not rack.strip():
            raise InvalidBrokers(
                f"--brokers: {item.strip()!r} ends in a colon: write ID:RACK, or the id alone"
            )
        found += [Broker(id=id_, rack=rack.strip() or None) for id_ in _ids(ids.strip(), item.strip())]
        if len(found) > MAX_BROKERS:
            raise InvalidBrokers(f"--brokers names more than {MAX_BROKERS:,} brokers: check the ranges")
    if racks is None:
        return tuple(found)
    if any(broker.rack is not None for broker in found):
        raise InvalidBrokers("racks are in --brokers (ID:RACK) and in --racks: use one of the two")
    names = parse_names(racks, "--racks")
    return tuple(Broker(id=broker.id, rack=names[n % len(names)]) for n, broker in enumerate(found))


def _ids(text: str, item: str) -> range:
    first, dash, last = text.partition("-")
    if not _is_id(first) or (dash and not _is_id(last)):
        raise InvalidBrokers(
            f"--brokers: {item!r} is not a broker: write ids (0,1,2), ranges (0-5), with racks 0-2:a,3-5:b"
        )
    low = int(first)
    high = int(last) if dash else low
    if high < low:
        raise InvalidBrokers(f"--brokers: {item!r} runs backwards: write {high}-{low}")
    if high - low >= MAX_BROKERS:
        raise InvalidBrokers(f"--brokers: {item!r} is more than {MAX_BROKERS:,} brokers: check the range")
    return range(low, high + 1)


def _is_id(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 10 and int(text) <= INT32_MAX


def parse_topics(text: str) -> dict[str, int]:
    """Parse topics and their partition counts, like `orders=12,payments=6`."""
    topics: dict[str, int] = {}
    for item in text.split(","):
        name, equals, count = (part.strip() for part in item.rpartition("="))
        if not equals or not name or not (count.isascii() and count.isdigit()):
            raise InvalidGroup(f"--topics: {item.strip()!r} is not TOPIC=PARTITIONS, like orders=12")
        if name in topics:
            raise InvalidGroup(f"--topics: {name!r} is there twice: keep one")
        topics[name] = int(count) if len(count) <= 10 else MAX_PARTITIONS + 1
        check_partitions(sum(topics.values()), "--topics")
    return topics


def parse_names(text: str, flag: str) -> tuple[str, ...]:
    """Parse names with commas between them, none empty."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise InvalidInput(f"{flag}: {text!r} has an empty name: write names with single commas between them")
    return names


def check_partitions(count: int, where: str) -> None:
    """Refuse too many partitions, before they take memory."""
    if count > MAX_PARTITIONS:
        raise InvalidInput(
            f"{where}: more than {MAX_PARTITIONS:,} partitions is more than Restow will lay out"
        )
