"""The state of a cluster at one moment: brokers, topics, replicas, leaders, reassignments."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from restow._frozen import frozen
from restow.model.ids import TopicPartition
from restow.model.showing import data_frame, snapshot_html, snapshot_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from restow.model.ids import BrokerId, Rack


@frozen
class LogDir:
    """A log dir of a broker. Sizes are of its file system, and unknown if the broker does not report them."""

    path: str
    total_bytes: int | None = None
    usable_bytes: int | None = None
    failed: bool = False
    cordoned: bool = False
    """True if the broker puts no new replicas into it (`cordoned.log.dirs`, Kafka 4.3 and later)."""


@frozen
class LiveBroker:
    """A live broker. `configs` are its own dynamic configs, including throttles."""

    id: BrokerId
    host: str
    port: int
    rack: Rack | None = None
    log_dirs: tuple[LogDir, ...] = ()
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def cordoned(self) -> bool:
        """Return whether it puts new replicas nowhere: all its working log dirs are cordoned."""
        working = self.working_dirs
        return bool(working) and all(each.cordoned for each in working)

    @property
    def working_dirs(self) -> tuple[LogDir, ...]:
        """The log dirs that have not failed."""
        return tuple(each for each in self.log_dirs if not each.failed)

    @property
    def disk_bytes(self) -> int | None:
        """The size of its working log dirs together; None if it does not tell that of each."""
        sizes = [each.total_bytes for each in self.working_dirs]
        return sum(each or 0 for each in sizes) if sizes and None not in sizes else None


class Copy(NamedTuple):
    """A replica on a broker's disk. A future replica is being moved into that log dir.

    A tuple, because a cluster has millions, and tuples are created several times as fast.
    """

    broker: BrokerId
    log_dir: str
    size_bytes: int
    lag_messages: int = 0
    future: bool = False


class Partition(NamedTuple):
    """One partition: replicas in order, the preferred leader first. A tuple, as copies are."""

    number: int
    replicas: tuple[BrokerId, ...]
    isr: tuple[BrokerId, ...]
    leader: BrokerId | None
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    copies: tuple[Copy, ...] = ()
    """The replicas that brokers reported; without those of brokers that did not answer."""

    @property
    def moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def size_bytes(self) -> int:
        """The size of one replica: the leader's, or the largest known."""
        leader = self.leader
        for broker, _, size, _, future in reversed(self.copies):
            if broker == leader and not future:
                return size
        return max(self.own_sizes.values(), default=0)

    @property
    def own_sizes(self) -> dict[BrokerId, int]:
        """The bytes of each replica on its own disk, as far as known; they may differ from the leader's."""
        return {broker: size for broker, _, size, _, future in self.copies if not future}

    @property
    def log_dirs(self) -> dict[BrokerId, str]:
        """The log dir of each replica, as far as known."""
        return {broker: path for broker, path, _, _, future in self.copies if not future}


@frozen
class Topic:
    """A topic with its own configs, and its partitions in the order of their numbers.

    Some numbers may be missing: brokers forget the partitions of a topic that is being deleted one by one.
    """

    name: str
    partitions: tuple[Partition, ...]
    id: str | None = None
    internal: bool = False
    configs: Mapping[str, str] = field(default_factory=dict)
    min_insync_replicas: int = 1

    @property
    def count(self) -> int:
        """How many partitions it was given; a new one gets this number."""
        return self.partitions[-1].number + 1 if self.partitions else 0

    def partition(self, number: int) -> Partition | None:
        if 0 <= number < len(self.partitions) and self.partitions[number].number == number:
            return self.partitions[number]
        return next((each for each in self.partitions if each.number == number), None)


class ReadingMember(NamedTuple):
    """A member of a consumer group, and what it reads."""

    id: str
    rack: Rack | None = None
    partitions: tuple[TopicPartition, ...] = ()


@frozen
class ReadingGroup:
    """A consumer group of either protocol: `classic` or `consumer`."""

    name: str
    protocol: str
    state: str
    coordinator: BrokerId
    members: tuple[ReadingMember, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The whole cluster. Brokers are sorted by id, topics by name, so that two snapshots can be compared."""

    cluster_id: str
    taken_ms: int
    controller: BrokerId | None
    brokers: tuple[LiveBroker, ...]
    topics: tuple[Topic, ...]
    default_configs: Mapping[str, str] = field(default_factory=dict)
    """Dynamic configs for all brokers."""
    unanswered: tuple[BrokerId, ...] = ()
    """Live brokers that did not describe their log dirs; sizes on them are unknown."""
    hidden_topics: tuple[str, ...] = ()
    """Topics with replicas on disk that we may not describe, so they are not in `topics`."""
    denied: tuple[str, ...] = ()
    """ACLs missing for other parts of this snapshot, for example "DESCRIBE_CONFIGS on topic orders"."""
    groups: tuple[ReadingGroup, ...] = ()
    """The consumer groups, by name, if the snapshot was taken with them."""

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with one row for each replica.

        snapshot.to_pandas().groupby("broker")["size_bytes"].sum()
        """
        return data_frame(snapshot_rows(self))

    def _repr_html_(self) -> str:
        return snapshot_html(self)

    @cached_property
    def broker(self) -> Mapping[BrokerId, LiveBroker]:
        return {broker.id: broker for broker in self.brokers}

    @cached_property
    def topic(self) -> Mapping[str, Topic]:
        return {topic.name: topic for topic in self.topics}

    def partition(self, which: TopicPartition) -> Partition | None:
        name, number = which
        topic = self.topic.get(name)
        return None if topic is None else topic.partition(number)

    def existing(self, which: TopicPartition) -> Partition:
        """Return a partition that is known to be there."""
        found = self.partition(which)
        if found is None:
            raise KeyError(which)
        return found

    def all_partitions(self) -> Iterator[tuple[TopicPartition, Partition]]:
        """Yield every partition with its name, topic by topic."""
        return zip(self.names, self.partitions, strict=True)

    @cached_property
    def names(self) -> tuple[TopicPartition, ...]:
        """The names of all partitions, topic by topic; cached, because millions take a second."""
        return tuple(
            [TopicPartition(topic.name, each.number) for topic in self.topics for each in topic.partitions]
        )

    @cached_property
    def partitions(self) -> tuple[Partition, ...]:
        """All partitions in the same order."""
        return tuple(chain.from_iterable(topic.partitions for topic in self.topics))
