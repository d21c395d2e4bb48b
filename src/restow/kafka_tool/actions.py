"""The tool's five actions on a cluster. Each prints its lines as it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from restow.client import BrokerError, ConfigResource, TopicPartitionReplica
from restow.errors import InvalidReplicationFactor, RackInformationMissing, RestowError
from restow.execute.run.steps import partitions_of
from restow.execute.throttle.throttles import DIR_RATE, RATES, REPLICAS
from restow.kafka_tool import lines, throttling
from restow.kafka_tool.arguments import DEFAULT_TIMEOUT_MS
from restow.kafka_tool.log_dirs import places, states
from restow.model import ANY_DIR, Broker, TopicPartition
from restow.placement import RackMode, place
from restow.plan.files.kafka_json import check_reassignment, parse_reassignment, parse_topics
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from restow.client import Admin, BrokerLogDirs, PartitionReassignment
    from restow.kafka_tool.arguments import Arguments
    from restow.kafka_tool.throttling import Changes
    from restow.model import BrokerId
    from restow.plan.pin import Target
    from restow.runtime.clock import Clock

_RETRY_S = 0.1
_ALTER_REASSIGNMENTS = 45
_NOT_THERE_YET = (ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


class Failed(RestowError):
    """The action failed, wholly or in part."""


class Terse(Failed):
    """A failure that the original prints without calling it an error."""


class JsonFiles(Protocol):
    """Reads the JSON files."""

    def __call__(self, path: str) -> str:
        """Return a file's text."""


class Call:
    """One call of the tool: its arguments, the cluster, and the output."""

    def __init__(
        self, arguments: Arguments, admin: Admin, read: JsonFiles, say: Callable[[str], None], clock: Clock
    ) -> None:
        self._arguments = arguments
        self._admin = admin
        self._read = read
        self._say = say
        self._clock = clock

    async def generate(self) -> None:
        topics = parse_topics(self._read(self._arguments.text("topics-to-move-json-file")))
        wanted = _broker_list(self._arguments.text("broker-list"))
        present = await self._assignment(topics)
        view = await self._admin.describe_cluster()
        brokers = [Broker(node.id, node.rack) for node in view.nodes if node.id in wanted]
        mode = RackMode.DISABLED if "disable-rack-aware" in self._arguments.switches else RackMode.ENFORCED
        proposed = {
            partition: replicas
            for topic in topics
            for partition, replicas in _placed(topic, present, brokers, mode).items()
        }
        self._say_all(lines.generated(present, await self._dirs(present), proposed))

    async def execute(self) -> None:
        arguments = self._arguments
        targets = self._targets()
        check_reassignment(targets)
        rate = arguments.number("throttle", -1)
        dir_rate = arguments.number("replica-alter-log-dirs-throttle", -1)
        arguments.number("timeout", DEFAULT_TIMEOUT_MS)
        moves = await self._admin.list_partition_reassignments()
        if arguments.by_nodes and _log_dirs(targets):
            raise Failed("log_dirs need --bootstrap-server: ZooKeeper knows of no log dirs")
        if moves and arguments.by_nodes:
            await self._only_throttle(moves, rate)
            return
        if moves and "additional" not in arguments.switches:
            raise Terse(lines.EXISTING)
        proposed = _replicas(targets)
        live = await self._check_brokers(proposed)
        present = await self._present(proposed)
        allow_replication_factor_change = "disallow-replication-factor-change" not in arguments.switches
        if not allow_replication_factor_change:
            await self._check_it_can_check(live)
        self._say_all(lines.current(present, await self._dirs(present)))
        log_dirs = _log_dirs(targets)
        if rate >= 0 or dir_rate >= 0:
            self._say(lines.RUN_VERIFY)
        if rate >= 0:
            routes = throttling.ways(proposed, present, moves)
            await self._set(throttling.changes_for(routes, rate), live)
            self._say(lines.throttle_set("inter-broker", rate))
        if dir_rate >= 0:
            brokers = {replica.broker for replica in log_dirs}
            await self._set(throttling.on_each("broker", brokers, {DIR_RATE: str(dir_rate)}), live)
            self._say(lines.throttle_set("replica-alter-dir", dir_rate))
        outcome = await self._admin.alter_partition_reassignments(
            proposed, allow_replication_factor_change=allow_replication_factor_change
        )
        if arguments.by_nodes and _overtaken(outcome):
            raise Terse(lines.aborted(proposed))
        if errors := _said(outcome):
            raise Terse(lines.refused(errors))
        self._say(lines.started(proposed))
        await self._alter_replica_log_dirs(log_dirs)

    async def _only_throttle(self, moves: Mapping[TopicPartition, PartitionReassignment], rate: int) -> None:
        """Change the throttle of the running reassignment: ZooKeeper holds only one at a time."""
        self._say(lines.RUNNING)
        if rate >= 0:
            live = await self._live()
            await self._set(throttling.changes_for(throttling.ways({}, {}, moves), rate), live)
            self._say(lines.throttle_set("inter-broker", rate))

    async def verify(self) -> None:
        targets = self._targets()
        wanted, log_dirs = _replicas(targets), _log_dirs(targets)
        moves = await self._admin.list_partition_reassignments()
        now = await self._known()
        self._say_all(lines.progress(wanted, now, moves))
        found = states(log_dirs, await self._disks(replica.broker for replica in log_dirs))
        self._say_all([str(state) for state in found] or [""])
        if not moves and all(state.done for state in found):
            await self._clear_throttles(wanted)

    async def list(self) -> None:
        self._say_all(lines.listing(await self._admin.list_partition_reassignments()))

    async def cancel(self) -> None:
        targets = self._targets()
        wanted, log_dirs = _replicas(targets), _log_dirs(targets)
        moves = await self._admin.list_partition_reassignments(wanted) if wanted else {}
        if moves:
            await self._check_originals(
                {
                    each: tuple(b for b in move.replicas if b not in move.adding)
                    for each, move in moves.items()
                }
            )
            if errors := _said(await self._admin.alter_partition_reassignments(dict.fromkeys(moves))):
                raise Terse(lines.not_cancelled(errors))
            self._say(lines.cancelled(moves))
        else:
            self._say(lines.NONE_ACTIVE)
        found = states(log_dirs, await self._disks(replica.broker for replica in log_dirs))
        back = {state.replica: state.current for state in found if state.active and state.current}
        if back:
            await self._alter_replica_log_dirs(back)
        else:
            self._say(lines.NO_DIR_MOVES)
        await self._clear_throttles(wanted)

    def _targets(self) -> tuple[Target, ...]:
        path = self._arguments.text("reassignment-json-file")
        return parse_reassignment(self._read(path), path)

    def _say_all(self, said: Iterable[str]) -> None:
        for line in said:
            self._say(line)

    async def _live(self) -> set[BrokerId]:
        return {node.id for node in (await self._admin.describe_cluster()).nodes}

    async def _known(self) -> dict[TopicPartition, tuple[BrokerId, ...]]:
        found = partitions_of(await self._admin.describe_topics())
        return {name: partition.replicas for name, partition in found.items()}

    async def _assignment(self, topics: Collection[str]) -> dict[TopicPartition, tuple[BrokerId, ...]]:
        """Return all partitions of these topics."""
        known = await self._known()
        there = {partition.topic for partition in known}
        for topic in topics:
            if topic not in there:
                raise Failed(f"Topic {topic} not found.")
        return {partition: replicas for partition, replicas in known.items() if partition.topic in topics}

    async def _present(
        self, wanted: Collection[TopicPartition]
    ) -> dict[TopicPartition, tuple[BrokerId, ...]]:
        """Return the present replicas of these partitions."""
        known = await self._assignment(sorted({partition.topic for partition in wanted}))
        if missing := sorted(partition for partition in wanted if partition not in known):
            raise Failed(f"Unable to find partition: {lines.comma(missing)}")
        return {partition: known[partition] for partition in wanted}

    async def _check_brokers(self, proposed: Mapping[TopicPartition, Sequence[BrokerId]]) -> set[BrokerId]:
        """Return the live brokers; refuse targets on brokers that are not alive."""
        live = await self._live()
        for replicas in proposed.values():
            for broker in replicas:
                if broker not in live:
                    raise Failed(f"Unknown broker id {broker}")
        return live

    async def _check_it_can_check(self, live: Collection[BrokerId]) -> None:
        """Refuse a broker that cannot check the replication factor: it would change it all the same."""
        for broker in sorted(live):
            _, newest = (await self._admin.api_versions(broker)).get(_ALTER_REASSIGNMENTS, (0, -1))
            if newest < 1:
                raise Failed(
                    f"broker {broker} cannot check that replication factors stay as they are: leave out "
                    "--disallow-replication-factor-change and check the file, or upgrade the broker"
                )

    async def _check_originals(self, originals: Mapping[TopicPartition, Collection[BrokerId]]) -> None:
        """Refuse to cancel where all original replicas are dead: the partition would have no leader."""
        live = await self._live()
        for partition, replicas in sorted(originals.items()):
            if live.isdisjoint(replicas):
                raise Failed(
                    f"{partition} cannot go back: none of its original replicas {lines.comma(replicas)} is "
                    "alive, and it would have no leader. Start one of these brokers first"
                )

    async def _disks(self, brokers: Iterable[BrokerId]) -> Mapping[BrokerId, BrokerLogDirs | BrokerError]:
        wanted = set(brokers)
        live = await self._live() if wanted else set()
        return await self._admin.describe_log_dirs(sorted(wanted & live)) if wanted else {}

    async def _dirs(
        self, assignment: Mapping[TopicPartition, Sequence[BrokerId]]
    ) -> dict[tuple[TopicPartition, BrokerId], str]:
        return places(await self._disks(b for replicas in assignment.values() for b in replicas))

    async def _set(self, changes: Changes, live: Collection[BrokerId]) -> None:
        """Set configs. Dead brokers have no traffic to throttle, and do not delay the others."""
        reachable = {of: values for of, values in changes.items() if of.of == "topic" or int(of.name) in live}
        _check(await self._admin.incremental_alter_configs(reachable))

    async def _clear_throttles(self, wanted: Mapping[TopicPartition, Sequence[BrokerId]]) -> None:
        if "preserve-throttles" in self._arguments.switches:
            return
        live = await self._live()
        brokers = live | {broker for replicas in wanted.values() for broker in replicas}
        topics = {partition.topic for partition in wanted}
        self._say(lines.clearing_brokers(brokers))
        cleared = throttling.on_each("broker", brokers & live, dict.fromkeys(RATES))
        outcome = dict(await self._admin.incremental_alter_configs(cleared))
        self._say(lines.clearing_topics(topics))
        if topics:
            cleared = throttling.on_each("topic", topics, dict.fromkeys(REPLICAS))
            outcome |= await self._admin.incremental_alter_configs(cleared)
        _check(outcome)
        if dead := sorted(brokers - live):
            raise Failed(f"broker {lines.comma(dead)} is not there: its throttles could not be cleared")

    async def _alter_replica_log_dirs(self, log_dirs: Mapping[TopicPartitionReplica, str]) -> None:
        """Send the log dirs until every broker has accepted; a broker may not know of its new replica yet."""
        left = dict(log_dirs)
        timeout_s = self._arguments.number("timeout", DEFAULT_TIMEOUT_MS) / 1000
        deadline_s = self._clock.monotonic_s() + timeout_s
        while left:
            for replica, error in sorted((await self._admin.alter_replica_log_dirs(left)).items()):
                if error is None:
                    self._say(lines.dir_move_started(*replica, left.pop(replica)))
                elif error.code not in _NOT_THERE_YET:
                    raise Failed(f"Failed to alter dir for {replica.partition}-{replica.broker}") from error
            if left and self._clock.monotonic_s() >= deadline_s:
                raise Terse(lines.dir_moves_late([f"{each.partition}-{each.broker}" for each in left]))
            if left:
                await self._clock.sleep(_RETRY_S)


def _replicas(targets: Iterable[Target]) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    return {target.partition: target.replicas for target in targets}


def _log_dirs(targets: Iterable[Target]) -> dict[TopicPartitionReplica, str]:
    return {
        TopicPartitionReplica(target.partition, broker): path
        for target in targets
        for broker, path in zip(target.replicas, target.log_dirs, strict=False)
        if path != ANY_DIR
    }


def _broker_list(given: str) -> set[BrokerId]:
    brokers: list[BrokerId] = []
    for each in given.split(","):
        if not each.isascii() or not each.removeprefix("-").isdigit():
            raise Failed(f'For input string: "{each}"')
        brokers.append(int(each))
    if twice := sorted({broker for broker in brokers if brokers.count(broker) > 1}):
        raise Failed(f"Broker list contains duplicate entries: [{', '.join(map(str, twice))}]")
    return set(brokers)


def _placed(
    topic: str,
    present: Mapping[TopicPartition, Sequence[BrokerId]],
    brokers: Sequence[Broker],
    mode: RackMode,
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """Place a topic anew, with the replication factor of its first partition."""
    mine = sorted(partition for partition in present if partition.topic == topic)
    replication_factor = len(present[mine[0]])
    if replication_factor > len(brokers):
        raise Failed(
            f"Replication factor: {replication_factor} larger than available brokers: {len(brokers)}."
        )
    try:
        rows = place(brokers, len(mine), replication_factor, rack_mode=mode)
    except RackInformationMissing:
        raise Failed(lines.MIXED_RACKS) from None
    except InvalidReplicationFactor as error:
        raise Failed(str(error)) from None
    return {partition: tuple(map(int, row)) for partition, row in zip(mine, rows, strict=True)}


def _said(outcome: Mapping[TopicPartition, BrokerError | None]) -> dict[TopicPartition, str]:
    return {each: _words(error) for each, error in outcome.items() if error is not None}


def _overtaken(outcome: Mapping[TopicPartition, BrokerError | None]) -> bool:
    """Return whether another reassignment came first."""
    return any(error and error.code == ErrorCode.REASSIGNMENT_IN_PROGRESS for error in outcome.values())


def _words(error: BrokerError) -> str:
    return str(error).removeprefix(f"{error.code.name}: ")


def _check(outcome: Mapping[ConfigResource, BrokerError | None]) -> None:
    for error in outcome.values():
        if error is not None:
            raise Failed(_words(error))
