"""The state of a cluster in a few numbers, for `cluster status` and the live table of `cluster up`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from restow.client import ClusterView, Disks, KafkaAdmin
    from restow.model import BrokerId, Topic


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLine:
    """One broker. It is down if partitions have replicas on it but it is not there."""

    id: BrokerId
    address: str | None
    rack: str | None
    is_controller: bool
    replicas: int
    leaders: int
    in_sync: int
    size_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """All brokers, and what is not as it should be."""

    cluster_id: str
    brokers: tuple[BrokerLine, ...]
    topics: int
    partitions: int
    under_replicated: int
    offline: int
    not_preferred: int
    """Partitions led by another than their first replica."""

    def document(self) -> dict[str, object]:
        """What `--json` prints."""
        return {
            "cluster_id": self.cluster_id,
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
                    "replicas": line.replicas,
                    "leaders": line.leaders,
                    "in_sync": line.in_sync,
                    "size_bytes": line.size_bytes,
                }
                for line in self.brokers
            ],
        }


async def read_status(admin: KafkaAdmin) -> Status:
    """Ask the cluster, over the wire."""
    from restow.client import BrokerError

    view = await admin.cluster()
    topics = await admin.topics()
    disks = await admin.disks([node.id for node in view.nodes])
    told = {broker: answer for broker, answer in disks.items() if not isinstance(answer, BrokerError)}
    return status_of(view, topics, told)


def status_of(view: ClusterView, topics: Sequence[Topic], disks: dict[BrokerId, Disks]) -> Status:
    """The numbers of what was told."""
    partitions = [partition for topic in topics for partition in topic.partitions]
    replicas = Counter(broker for each in partitions for broker in each.replicas)
    leaders = Counter(each.leader for each in partitions if each.leader is not None)
    in_sync = Counter(broker for each in partitions for broker in each.isr)
    nodes = {node.id: node for node in view.nodes}
    sizes = {broker: sum(each.size_bytes for each in told.replicas) for broker, told in disks.items()}
    return Status(
        cluster_id=view.cluster_id,
        brokers=tuple(
            BrokerLine(
                id=broker,
                address=f"{nodes[broker].host}:{nodes[broker].port}" if broker in nodes else None,
                rack=nodes[broker].rack if broker in nodes else None,
                is_controller=broker == view.controller,
                replicas=replicas[broker],
                leaders=leaders[broker],
                in_sync=in_sync[broker],
                size_bytes=sizes.get(broker),
            )
            for broker in sorted(nodes.keys() | replicas.keys())
        ),
        topics=len(topics),
        partitions=len(partitions),
        under_replicated=sum(len(each.isr) < len(each.replicas) for each in partitions),
        offline=sum(each.leader is None for each in partitions),
        not_preferred=sum(each.leader is not None and each.leader != each.replicas[0] for each in partitions),
    )


def status_table(status: Status) -> Table:
    """Brokers in rows, and a line below that says whether all is well."""
    from rich.table import Table

    from restow.cli.drawing import clean, count
    from restow.cli.sizes import human_bytes

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0), caption_justify="left")
    for name in ("broker", "address", "rack", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("leaders", "replicas", "in sync", "on disk"):
        table.add_column(name, justify="right", no_wrap=True)
    for line in status.brokers:
        state = "down" if line.address is None else "controller" if line.is_controller else "up"
        table.add_row(
            str(line.id),
            clean(line.address or "-"),
            clean(line.rack or "-"),
            state,
            f"{line.leaders:,}",
            f"{line.replicas:,}",
            f"{line.in_sync:,}",
            "-" if line.size_bytes is None else human_bytes(line.size_bytes),
            style={"down": "red", "controller": "bold"}.get(state),
        )
    table.caption = (
        f"{count(status.topics, 'topic')}, {count(status.partitions, 'partition')}: "
        + (
            f"{status.under_replicated:,} under-replicated, {status.offline:,} offline"
            if status.under_replicated or status.offline
            else "all in sync"
        )
        + (f", {status.not_preferred:,} not led by their first replica" if status.not_preferred else "")
    )
    return table
