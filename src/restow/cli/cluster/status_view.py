"""The state of a cluster in a few numbers, for `cluster status` and the live table of `cluster up`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.cli.shared.drawing import clean
from restow.cli.shared.tables import LABEL, NAME, NUMBER, Grid
from restow.cli.shared.unseen import hidden
from restow.client import BrokerError, ClientError
from restow.model import TopicPartition
from restow.sizes import count, human_bytes
from restow.snapshot import hidden_topics
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from restow.client import BrokerLogDirs, ClusterView, KafkaAdmin, PartitionReassignment
    from restow.model import BrokerId, Topic

_PATIENCE_S = 5.0
"""How much longer than most others a broker may take to tell its sizes."""


@frozen
class BrokerLine:
    """One broker. It is down if partitions have replicas on it but the metadata does not list it."""

    id: BrokerId
    address: str | None
    rack: str | None
    is_controller: bool
    replicas: int
    leaders: int
    in_sync: int
    size_bytes: int | None
    cordoned: tuple[str, ...] = ()
    """Log dirs that take no new replicas."""
    failed: tuple[str, ...] = ()
    """Log dirs that the broker lost."""
    answers: bool = True
    """Whether the broker was there to answer us, if the metadata lists it."""

    @property
    def state(self) -> str:
        if self.address is None:
            return "down"
        if not self.answers:
            return "no answer"
        return "controller" if self.is_controller else "up"


@frozen
class Status:
    """All brokers, and the numbers of partitions that need attention."""

    cluster_id: str
    brokers: tuple[BrokerLine, ...]
    topics: int
    partitions: int
    under_replicated: int
    offline: int
    not_preferred: int
    """Partitions whose leader is not their first replica."""
    controller: BrokerId | None = None
    """The controller's id: under KRaft the quorum's leader, which need not be a broker. None if unknown."""
    warnings: tuple[str, ...] = ()
    """What the cluster did not report, and why."""

    def document(self) -> dict[str, object]:
        """Return the document that `--json` prints."""
        return {
            "cluster_id": self.cluster_id,
            "controller": self.controller,
            "topics": self.topics,
            "partitions": self.partitions,
            "under_replicated": self.under_replicated,
            "offline": self.offline,
            "not_preferred": self.not_preferred,
            "brokers": [
                {
                    "id": line.id,
                    "address": line.address,
                    "rack": line.rack,
                    "controller": line.is_controller,
                    "up": line.address is not None,
                    "answers": line.address is not None and line.answers,
                    "replicas": line.replicas,
                    "leaders": line.leaders,
                    "in_sync": line.in_sync,
                    "size_bytes": line.size_bytes,
                    "cordoned_log_dirs": list(line.cordoned),
                    "failed_log_dirs": list(line.failed),
                }
                for line in self.brokers
            ],
            "warnings": list(self.warnings),
        }


async def read_status(admin: KafkaAdmin) -> Status:
    """Ask the cluster for its state."""
    view = await admin.describe_cluster()
    topics = await admin.describe_topics()
    disks = await admin.describe_log_dirs([node.id for node in view.nodes], _PATIENCE_S)
    told = {broker: answer for broker, answer in disks.items() if not isinstance(answer, BrokerError)}
    silent = {
        broker
        for broker, answer in disks.items()
        if isinstance(answer, BrokerError) and answer.code is ErrorCode.BROKER_NOT_AVAILABLE
    }
    warnings = [f"sizes on broker {broker}: {disks[broker]}" for broker in disks if broker not in told]
    controller = None
    try:
        controller = await admin.controller()
        if controller is None:
            warnings.append("there is no controller at the moment")
    except ClientError as error:
        warnings.append(f"the controller is not known: {error}")
    on_disks = (each.partition for answer in told.values() for each in answer.replicas)
    warnings += hidden(await hidden_topics(admin, topics, on_disks))
    moves: Mapping[TopicPartition, PartitionReassignment] = {}
    try:
        moves = await admin.list_partition_reassignments()
    except ClientError as error:
        warnings.append(f"what is being moved is not known: {error}")
    status = status_of(view, topics, told, controller, moves)
    lines = tuple(replace(each, answers=each.id not in silent) for each in status.brokers)
    return replace(status, brokers=lines, warnings=tuple(warnings))


def status_of(
    view: ClusterView,
    topics: Sequence[Topic],
    disks: Mapping[BrokerId, BrokerLogDirs],
    controller: BrokerId | None,
    moves: Mapping[TopicPartition, PartitionReassignment] = MappingProxyType({}),
) -> Status:
    """Count brokers, replicas and partitions in the answers.

    As for Kafka's own tool, a replica that is being added need not be in sync yet.
    """
    partitions = [partition for topic in topics for partition in topic.partitions]
    replicas = Counter(broker for each in partitions for broker in each.replicas)
    leaders = Counter(each.leader for each in partitions if each.leader is not None)
    in_sync = Counter(broker for each in partitions for broker in each.isr)
    nodes = {node.id: node for node in view.nodes}
    sizes = {broker: sum(each.size_bytes for each in told.replicas) for broker, told in disks.items()}
    dirs = {broker: told.log_dirs for broker, told in disks.items()}
    return Status(
        cluster_id=view.cluster_id,
        controller=controller,
        brokers=tuple(
            BrokerLine(
                id=broker,
                address=f"{nodes[broker].host}:{nodes[broker].port}" if broker in nodes else None,
                rack=nodes[broker].rack if broker in nodes else None,
                is_controller=broker == controller,
                replicas=replicas[broker],
                leaders=leaders[broker],
                in_sync=in_sync[broker],
                size_bytes=sizes.get(broker),
                cordoned=tuple(each.path for each in dirs.get(broker, ()) if each.cordoned),
                failed=tuple(each.path for each in dirs.get(broker, ()) if each.failed),
            )
            for broker in sorted(nodes.keys() | replicas.keys())
        ),
        topics=len(topics),
        partitions=len(partitions),
        under_replicated=sum(
            len(each.isr) < len(each.replicas) - (0 if move is None else len(move.adding))
            for topic in topics
            for each in topic.partitions
            for move in (moves.get(TopicPartition(topic.name, each.number)),)
        ),
        offline=sum(each.leader is None for each in partitions),
        not_preferred=sum(each.leader is not None and each.leader != each.replicas[0] for each in partitions),
    )


def status_view(status: Status) -> RenderableType:
    """Draw one row per broker, and below them one line per remark."""
    from rich.console import Group
    from rich.text import Text

    lines = [Text(_summary(status), style="dim italic"), *(Text(each) for each in _remarks(status))]
    lines += [Text(clean(each), style="yellow") for each in status.warnings]
    return Group(_table(status), *lines)


def _table(status: Status) -> Grid:
    table = Grid(
        ("broker", LABEL),
        ("address", NAME),
        ("rack", NAME),
        ("state", LABEL),
        *((name, NUMBER) for name in ("leaders", "replicas", "in sync", "on disk")),
    )
    for line in status.brokers:
        table.add_row(
            str(line.id),
            line.address or "-",
            line.rack or "-",
            line.state,
            f"{line.leaders:,}",
            f"{line.replicas:,}",
            f"{line.in_sync:,}",
            human_bytes(line.size_bytes),
            style={"down": "red", "no answer": "red", "controller": "bold"}.get(line.state),
        )
    return table


def _summary(status: Status) -> str:
    return (
        f"{count(status.topics, 'topic')}, {count(status.partitions, 'partition')}: "
        + (
            f"{status.under_replicated:,} under-replicated, {status.offline:,} offline"
            if status.under_replicated or status.offline
            else "all in sync"
        )
        + (f", {status.not_preferred:,} not led by their first replica" if status.not_preferred else "")
    )


def _remarks(status: Status) -> Iterator[str]:
    """Yield remarks without a column: a controller that is no broker, cordoned or failed log dirs."""
    if status.controller is not None and not any(line.is_controller for line in status.brokers):
        yield f"controller: node {status.controller}, the leader of the metadata quorum"
    for line in status.brokers:
        for state, paths in (("cordoned", line.cordoned), ("failed", line.failed)):
            if paths:
                yield f"broker {line.id}, {state} log dirs: {clean(', '.join(paths))}"
