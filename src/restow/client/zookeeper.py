"""The client for clusters older than 2.4, through Kafka's nodes in ZooKeeper.

async with zookeeper_connected("localhost:2181/kafka") as admin:
    await admin.alter_partition_reassignments({TopicPartition("orders", 0): (4, 5, 6)})

A request is written into a node under `/admin`, which the controller deletes when it is done. So there is one
reassignment at a time: a second one is answered with REASSIGNMENT_IN_PROGRESS, and none can be cancelled.
Sizes and log dirs are not in ZooKeeper, and configs only if they were set dynamically; other requests are
answered with UNSUPPORTED_VERSION and the reason.
"""

from __future__ import annotations

import asyncio
import logging
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from restow.client import znodes
from restow.client.errors import BrokerError, Unreachable
from restow.client.values import ClusterView, Config, PartitionReassignment
from restow.client.zookeeper_checks import refusal
from restow.errors import InvalidAddress
from restow.model import Partition, Topic, TopicPartition
from restow.model.permissions import Permissions
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence

    from restow.client.values import BrokerLogDirs, ConfigResource, NewTopic, TopicPartitionReplica
    from restow.model import BrokerId

T = TypeVar("T")

# kazoo warns even of a connection that we closed; only a configured log shows it.
_LOG = logging.getLogger(__name__)
_LOG.addHandler(logging.NullHandler())
_ADDRESS = re.compile(r"(?P<hosts>[^\s,/:]+(:[0-9]{1,5})?(,[^\s,/:]+(:[0-9]{1,5})?)*)(?P<root>(/[^\s/]+)*)/?")
_INTERNAL = frozenset({"__consumer_offsets", "__transaction_state"})
_POLL_S = 0.1
_CONNECT_TIMEOUT_S = 10.0
_TRIES = 5


class ZooKeeperAdmin:
    """An `Admin` on a ZooKeeper session. Made by `zookeeper_connected`."""

    def __init__(self, client: Any, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s

    async def describe_cluster(self) -> ClusterView:
        return await self._do(self._cluster)

    async def describe_topics(self, names: Sequence[str] | None = None) -> tuple[Topic, ...]:
        return await self._do(lambda: self._topics(names))

    async def create_topics(self, topics: Iterable[NewTopic]) -> Mapping[str, BrokerError | None]:
        return {topic.name: _cannot("topics are not made through ZooKeeper here") for topic in topics}

    async def create_partitions(
        self,
        topic: str,
        partitions: int,  # noqa: ARG002  (the protocol's)
        by_hand: Sequence[Sequence[BrokerId]] | None = None,  # noqa: ARG002
    ) -> None:
        raise _cannot(f"{topic!r}: topics are not expanded through ZooKeeper here")

    async def delete_topics(self, topics: Iterable[str]) -> Mapping[str, BrokerError | None]:
        return {name: _cannot("topics are not deleted through ZooKeeper here") for name in topics}

    async def describe_configs(
        self,
        of: Iterable[ConfigResource],
        keys: Collection[str] | None = None,  # noqa: ARG002  a znode is read whole
        patience_s: float | None = None,  # noqa: ARG002  (the protocol's)
    ) -> Mapping[ConfigResource, Mapping[str, Config] | BrokerError]:
        """Return dynamic configs only: brokers' files and Kafka's defaults are not in ZooKeeper."""
        wanted = tuple(of)
        return await self._do(lambda: self._configs(wanted))

    async def incremental_alter_configs(
        self, changes: Mapping[ConfigResource, Mapping[str, str | None]]
    ) -> Mapping[ConfigResource, BrokerError | None]:
        return await self._do(lambda: {of: self._set_config(of, some) for of, some in changes.items()})

    async def describe_log_dirs(
        self,
        brokers: Iterable[BrokerId],
        patience_s: float | None = None,  # noqa: ARG002  (the protocol's)
    ) -> Mapping[BrokerId, BrokerLogDirs | BrokerError]:
        return {broker: _cannot("log dirs and sizes are not in ZooKeeper") for broker in brokers}

    async def alter_replica_log_dirs(
        self, targets: Mapping[TopicPartitionReplica, str]
    ) -> Mapping[TopicPartitionReplica, BrokerError | None]:
        return {each: _cannot("log dirs are chosen by the broker, not by ZooKeeper") for each in targets}

    async def alter_partition_reassignments(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        *,
        allow_replication_factor_change: bool = True,
    ) -> Mapping[TopicPartition, BrokerError | None]:
        """Write one node for all targets; invalid ones are refused and left out."""
        return await self._do(lambda: self._reassign(targets, allow_replication_factor_change))

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None
    ) -> Mapping[TopicPartition, PartitionReassignment]:
        """Return reassignments. Before 2.4, replicas that are not in sync count as being added."""
        wanted = None if partitions is None else frozenset(partitions)
        return await self._do(lambda: self._moves(wanted))

    async def elect_leaders(
        self, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, BrokerError | None]:
        """Request the election, wait until the controller has deleted the node, and check the leaders."""
        wanted = tuple(partitions)
        topics = await self._do(lambda: self._assignments({each.topic for each in wanted}))
        first = {
            each: topics[each.topic].replicas[each.partition][0]
            for each in wanted
            if each.topic in topics and topics[each.topic].replicas.get(each.partition)
        }
        outcome: dict[TopicPartition, BrokerError | None] = {
            each: BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) for each in wanted if each not in first
        }
        if not first:
            return outcome
        if not await self._asked_for_election(znodes.write_election(first)):
            why = f"{znodes.ELECT} is still there after {self._timeout_s:g} s: is there a controller?"
            late = BrokerError(ErrorCode.REQUEST_TIMED_OUT, why)
            return {**outcome, **dict.fromkeys(first, late)}
        states = await self._do(lambda: self._states(first))
        for each, broker in first.items():
            leads = states.get(each, (None, ()))[0] == broker
            outcome[each] = None if leads else BrokerError(ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)
        return outcome

    async def api_versions(self, broker: BrokerId) -> Mapping[int, tuple[int, int]]:
        raise _cannot(f"what broker {broker} answers is not in ZooKeeper")

    async def permissions(self, topics: Sequence[str] = ()) -> Permissions:  # not reported
        return Permissions(topics=dict.fromkeys(topics))

    async def describe_metadata_quorum(self) -> None:
        return None

    async def controller(self) -> BrokerId | None:
        found = await self._do(lambda: self._read([znodes.CONTROLLER]))
        return znodes.parse(*found.popitem()).get("brokerid") if found else None

    async def close(self) -> None:
        await asyncio.to_thread(_hang_up, self._client)

    async def _do(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(_in_words, work)

    def _cluster(self) -> ClusterView:
        paths = [f"{znodes.BROKERS}/{each}" for each in self._children(znodes.BROKERS)]
        found = self._read([znodes.CLUSTER, *paths])
        identity = found.get(znodes.CLUSTER)
        nodes = (znodes.read_node(path, found[path]) for path in paths if path in found)
        return ClusterView(
            cluster_id=str(znodes.parse(znodes.CLUSTER, identity).get("id", "")) if identity else "",
            nodes=tuple(sorted(nodes, key=lambda node: node.id)),
        )

    def _topics(self, names: Sequence[str] | None) -> tuple[Topic, ...]:
        assignments = self._assignments(self._children(znodes.TOPICS) if names is None else names)
        for name in names or ():
            if name not in assignments:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r}")
        states = self._states(
            TopicPartition(name, number) for name, each in assignments.items() for number in each.replicas
        )
        return tuple(
            Topic(
                name=name,
                partitions=tuple(
                    Partition(number=number, replicas=replicas, leader=leader, isr=isr)
                    for number, replicas in sorted(each.replicas.items())
                    for leader, isr in (states.get(TopicPartition(name, number), (None, ())),)
                ),
                id=each.id,
                internal=name in _INTERNAL,
            )
            for name, each in sorted(assignments.items())
        )

    def _assignments(self, names: Iterable[str]) -> dict[str, znodes.TopicAssignment]:
        paths = {f"{znodes.TOPICS}/{name}": name for name in names}
        return {paths[path]: znodes.read_assignment(path, data) for path, data in self._read(paths).items()}

    def _states(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[BrokerId | None, tuple[BrokerId, ...]]]:
        paths = {znodes.state_path(each): each for each in partitions}
        return {paths[path]: znodes.read_state(path, data) for path, data in self._read(paths).items()}

    def _configs(
        self, wanted: Sequence[ConfigResource]
    ) -> dict[ConfigResource, Mapping[str, Config] | BrokerError]:
        paths = {znodes.config_path(each.of, each.name): each for each in wanted}
        found = self._read(paths)
        answer: dict[ConfigResource, Mapping[str, Config] | BrokerError] = {}
        for path, each in paths.items():
            source = "default broker" if each.of == "broker" and not each.name else each.of
            values = znodes.read_config(path, found.get(path, b""))
            answer[each] = {
                name: Config(name=name, value=value, source=source) for name, value in sorted(values.items())
            }
        return answer

    def _set_config(self, of: ConfigResource, changes: Mapping[str, str | None]) -> BrokerError | None:
        """Read, change and write back, unless another client did meanwhile, and then notify the brokers."""
        from kazoo.exceptions import BadVersionError, NodeExistsError, NoNodeError

        if of.of == "topic" and not self._client.exists(f"{znodes.TOPICS}/{of.name}"):
            return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {of.name!r}")
        path = znodes.config_path(of.of, of.name)
        for _ in range(_TRIES):
            try:
                data, status = self._client.get(path)
            except NoNodeError:
                data, status = b"", None
            values = {**znodes.read_config(path, data), **changes}
            new = znodes.write_config({name: value for name, value in values.items() if value is not None})
            try:
                if status is None:
                    self._client.create(path, new, makepath=True)
                else:
                    self._client.set(path, new, version=status.version)
            except (BadVersionError, NodeExistsError, NoNodeError):
                continue
            note = znodes.write_config_change(of.of, of.name)
            self._client.create(znodes.CONFIG_CHANGE, note, sequence=True, makepath=True)
            return None
        return BrokerError(ErrorCode.INVALID_REQUEST, f"{path} is being changed by others all the time")

    def _reassign(
        self,
        targets: Mapping[TopicPartition, Sequence[BrokerId] | None],
        allow_replication_factor_change: bool,
    ) -> dict[TopicPartition, BrokerError | None]:
        alive = frozenset(map(int, self._children(znodes.BROKERS)))
        assignments = self._assignments({topic for topic, _ in targets})
        outcome = {
            each: refusal(each, replicas, assignments.get(each.topic), alive, allow_replication_factor_change)
            for each, replicas in targets.items()
        }
        accepted = {each: targets[each] or () for each, error in outcome.items() if error is None}
        if not accepted:
            return outcome
        data = znodes.write_targets(accepted)
        error = None
        if len(data) > znodes.LONGEST_BYTES:
            error = BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"{len(accepted):,} partitions do not fit into one node of ZooKeeper: move fewer at a time",
            )
        elif not self._created(znodes.REASSIGN, data):
            error = BrokerError(
                ErrorCode.REASSIGNMENT_IN_PROGRESS,
                f"{znodes.REASSIGN} is there: through ZooKeeper there is one reassignment at a time",
            )
        return {**outcome, **dict.fromkeys(accepted, error)}

    def _moves(self, wanted: frozenset[TopicPartition] | None) -> dict[TopicPartition, PartitionReassignment]:
        data = self._read([znodes.REASSIGN]).get(znodes.REASSIGN)
        targets = znodes.read_targets(znodes.REASSIGN, data) if data else {}
        topics = {each.topic for each in wanted} if wanted is not None else self._children(znodes.TOPICS)
        found: dict[TopicPartition, PartitionReassignment] = {}
        older: dict[TopicPartition, tuple[BrokerId, ...]] = {}
        for name, each in self._assignments(topics).items():
            for number, replicas in each.replicas.items():
                which = TopicPartition(name, number)
                adding, removing = each.adding.get(number, ()), each.removing.get(number, ())
                if wanted is not None and which not in wanted:
                    continue
                if adding or removing:
                    found[which] = PartitionReassignment(replicas=replicas, adding=adding, removing=removing)
                elif which in targets:
                    older[which] = replicas
        states = self._states(older)
        for which, replicas in older.items():
            target, in_sync = targets[which], states.get(which, (None, ()))[1]
            removing = tuple(broker for broker in replicas if broker not in target)
            found[which] = PartitionReassignment(
                replicas=(*target, *removing),
                adding=tuple(broker for broker in target if broker not in in_sync),
                removing=removing,
            )
        return found

    async def _asked_for_election(self, data: bytes) -> bool:
        """Return whether the node could be written, and the controller deleted it, in time."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._timeout_s
        written = False
        while loop.time() < deadline_s:
            if not written:
                written = await self._do(lambda: self._created(znodes.ELECT, data))
            elif not await self._do(lambda: bool(self._client.exists(znodes.ELECT))):
                return True
            await asyncio.sleep(_POLL_S)
        return False

    def _created(self, path: str, data: bytes) -> bool:
        from kazoo.exceptions import NodeExistsError

        try:
            self._client.create(path, data, makepath=True)
        except NodeExistsError:
            return False
        return True

    def _children(self, path: str) -> list[str]:
        from kazoo.exceptions import NoNodeError

        try:
            return sorted(self._client.get_children(path))
        except NoNodeError:
            return []

    def _read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """Return the existing nodes. All are requested before the first answer is awaited."""
        from kazoo.exceptions import NoNodeError

        asked = [(path, self._client.get_async(path)) for path in paths]
        found: dict[str, bytes] = {}
        for path, answer in asked:
            try:
                found[path] = answer.get(timeout=self._timeout_s)[0]
            except NoNodeError:
                continue
        return found


@asynccontextmanager
async def zookeeper_connected(address: str, timeout_s: float = 30.0) -> AsyncIterator[ZooKeeperAdmin]:
    """Open an admin, and close it when the context ends; the address is HOST:PORT[,…][/ROOT]."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise InvalidAddress(
            f"ZooKeeper: {address!r} is not HOST:PORT[,…][/ROOT]; write localhost:2181/kafka"
        )
    admin = ZooKeeperAdmin(await asyncio.to_thread(_connect, match, timeout_s), timeout_s)
    try:
        yield admin
    finally:
        await admin.close()


def _connect(match: re.Match[str], timeout_s: float) -> Any:
    from kazoo.client import KazooClient

    client = KazooClient(match["hosts"] + match["root"], timeout=timeout_s, logger=_LOG)
    try:
        client.start_async().wait(min(timeout_s, _CONNECT_TIMEOUT_S))
        _check_for_kafka(client, match)
    except BaseException:
        _hang_up(client)
        raise
    return client


def _check_for_kafka(client: Any, match: re.Match[str]) -> None:
    if not client.connected:
        raise Unreachable(f"no ZooKeeper answers at {match['hosts']}: is the address right, and is it up?")
    if not _in_words(lambda: client.exists(znodes.BROKERS)):
        raise Unreachable(
            f"the ZooKeeper at {match['hosts']} knows no Kafka brokers under {match['root'] or '/'}: "
            "is the path after the address the one in the brokers' zookeeper.connect?"
        )


def _hang_up(client: Any) -> None:
    client.stop()
    client.close()


def _in_words(work: Callable[[], T]) -> T:
    from kazoo.exceptions import KazooException, NoAuthError
    from kazoo.handlers.threading import KazooTimeoutError

    try:
        return work()
    except NoAuthError as error:
        raise BrokerError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "ZooKeeper's access lists do not allow this"
        ) from error
    except (KazooException, KazooTimeoutError) as error:
        raise Unreachable(f"ZooKeeper does not answer ({type(error).__name__}): is it up?") from error


def _cannot(why: str) -> BrokerError:
    return BrokerError(
        ErrorCode.UNSUPPORTED_VERSION, f"{why}; use --bootstrap-server with Kafka 2.4 or later"
    )
