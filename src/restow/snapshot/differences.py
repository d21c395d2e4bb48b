"""List the differences of two snapshots in sentences, except sizes and lag, which always differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from restow.model import LiveBroker, LogDir, Partition, Snapshot, Topic


def differences(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Return one sentence for each change, brokers first."""
    return tuple(_all(before, after))


def _all(before: Snapshot, after: Snapshot) -> Iterator[str]:
    if before.cluster_id != after.cluster_id:
        yield f"another cluster: {before.cluster_id} → {after.cluster_id}"
    if before.controller != after.controller:
        yield f"controller: {before.controller} → {after.controller}"
    yield from _configs("all brokers", before.default_configs, after.default_configs)
    for broker in sorted(before.broker.keys() | after.broker.keys()):
        yield from _broker(broker, before.broker.get(broker), after.broker.get(broker))
    for name in sorted(before.topic.keys() | after.topic.keys()):
        yield from _topic(name, before.topic.get(name), after.topic.get(name))


def _broker(broker: int, old: LiveBroker | None, new: LiveBroker | None) -> Iterator[str]:
    name = f"broker {broker}"
    if old is None or new is None:
        yield f"{name}: {'came' if old is None else 'gone'}"
        return
    if old.rack != new.rack:
        yield f"{name}, rack: {old.rack} → {new.rack}"
    dirs_before = {each.path: each for each in old.log_dirs}
    dirs_after = {each.path: each for each in new.log_dirs}
    for path in sorted(dirs_before.keys() | dirs_after.keys()):
        state = _dir(dirs_before.get(path)), _dir(dirs_after.get(path))
        if state[0] != state[1]:
            yield f"{name}, {path}: {state[0]} → {state[1]}"
    yield from _configs(name, old.configs, new.configs)


def _dir(directory: LogDir | None) -> str:
    if directory is None:
        return "not there"
    return "failed" if directory.failed else "cordoned" if directory.cordoned else "works"


def _topic(name: str, old: Topic | None, new: Topic | None) -> Iterator[str]:
    if old is None or new is None:
        yield f"topic {name}: {'made' if old is None else 'deleted'}"
        return
    if old.id != new.id:
        yield f"topic {name}: made anew"
    if len(old.partitions) != len(new.partitions):
        yield f"topic {name}, partitions: {len(old.partitions)} → {len(new.partitions)}"
    yield from _configs(f"topic {name}", old.configs, new.configs)
    for was in old.partitions:
        if (now := new.partition(was.number)) is not None:
            yield from _partition(f"{name}-{was.number}", was, now)


def _partition(name: str, old: Partition, new: Partition) -> Iterator[str]:
    if old.replicas != new.replicas:
        yield f"{name}, replicas: {list(old.replicas)} → {list(new.replicas)}"
    if set(old.isr) != set(new.isr):
        yield f"{name}, in sync: {sorted(old.isr)} → {sorted(new.isr)}"
    if old.leader != new.leader:
        yield f"{name}, leader: {old.leader} → {new.leader}"
    if old.moving != new.moving:
        yield f"{name}: {'begins to move' if new.moving else 'does not move any more'}"
    places_before = old.log_dirs
    places_after = new.log_dirs
    for broker in sorted(places_before.keys() & places_after.keys()):
        if places_before[broker] != places_after[broker]:
            yield f"{name} on broker {broker}: {places_before[broker]} → {places_after[broker]}"


def _configs(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            yield f"{name}, {key}: {old.get(key, 'not set')} → {new.get(key, 'not set')}"
