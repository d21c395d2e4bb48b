"""Topics with a search, and one topic as a matrix of partitions and brokers."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from restow.html.page import Markup, Tile, link, paragraph, table, tiles, titled
from restow.sizes import human_bytes
from restow.ui.forms import search_form
from restow.ui.frame import Shown, address, pager
from restow.ui.lists import paged
from restow.ui.pages.cluster import away_banner
from restow.ui.pages.links import broker_link, ids

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.model import BrokerId, Partition, Snapshot, Topic
    from restow.ui.sums import TopicSum
    from restow.ui.watching import ClusterLook

_ROWS = 200
_MATRIX_ROWS = 100
_MATRIX_BROKERS = 60
SORTS = ("name", "bytes", "partitions", "under-replicated", "moving")
REPLICA_KEY = (
    "L leads, F follows in sync, ! is not in sync, + is being added, − is being removed. "
    "The first replica, which should lead, is underlined."
)

_LIST_KEY = "Its {:,} brokers are too many for a matrix. The first replica should lead."


def topics_page(look: ClusterLook, search: str, sort: str, number: int) -> Shown:
    """Return the table of topics whose names contain what was searched for."""
    if look.sums is None:
        return Shown(title="Topics", body=away_banner(look) + paragraph("No topic has been seen yet."))
    wanted = search.strip().lower()
    chosen = [each for each in look.sums.topics if wanted in each.name.lower()]
    found = paged(sorted(chosen, key=lambda each: _key(each, sort)), number, _ROWS)
    rows = [
        (
            link(each.name, address("/topic", name=each.name)),
            f"{each.partitions:,}",
            each.replication_factor,
            human_bytes(each.size_bytes),
            f"{each.under_replicated:,}",
            f"{each.offline:,}",
            f"{each.moving:,}",
        )
        for each in found.rows
    ]
    heads = ("topic", "partitions", "replication factor", "bytes", "under-replicated", "offline", "moving")
    told = paragraph(f"{found.total:,} of {len(look.sums.topics):,} topics")
    turn = pager("/topics", found.number, found.pages, search=search, sort=sort)
    form = search_form("/topics", search, sort, SORTS)
    body = f"<section>{form}{told}{table(heads, rows, caption='topics')}{turn}</section>"
    return Shown(title="Topics", body=away_banner(look) + body)


def _key(topic: TopicSum, sort: str) -> tuple[int, str]:
    sizes = {
        "bytes": topic.size_bytes,
        "partitions": topic.partitions,
        "under-replicated": topic.under_replicated,
        "moving": topic.moving,
    }
    return -sizes.get(sort, 0), topic.name


def topic_page(look: ClusterLook, name: str, number: int) -> Shown | None:
    """Return the page of one topic; None if there is none of that name."""
    snapshot = look.snapshot
    if snapshot is None or look.sums is None or (topic := snapshot.topic.get(name)) is None:
        return None
    sums = next(each for each in look.sums.topics if each.name == name)
    shown = (
        Tile(value=f"{sums.partitions:,}", name="partitions"),
        Tile(value=str(sums.replication_factor), name="replication factor"),
        Tile(value=str(topic.min_insync_replicas), name="min.insync.replicas"),
        Tile(value=human_bytes(sums.size_bytes), name="in all replicas"),
        Tile(
            value=f"{sums.under_replicated:,}",
            name="under-replicated",
            kind="bad" if sums.under_replicated else "good",
        ),
    )
    found = paged(topic.partitions, number, _MATRIX_ROWS)
    brokers = _brokers(snapshot, topic.partitions)
    if len(brokers) <= _MATRIX_BROKERS:
        note, drawn = REPLICA_KEY, _matrix(snapshot, topic, found.rows, brokers)
    else:
        note, drawn = _LIST_KEY.format(len(brokers)), _list(snapshot, topic, found.rows)
    parts = [
        tiles(shown),
        titled("Partitions and brokers", drawn, note=note),
        pager("/topic", found.number, found.pages, name=name),
    ]
    if topic.configs:
        rows = sorted(topic.configs.items())
        parts.append(titled("Configs of its own", table(("config", "value"), rows, left=2)))
    return Shown(title=f"Topic {name}", body=away_banner(look) + "".join(parts))


def _brokers(snapshot: Snapshot, partitions: Iterable[Partition]) -> list[BrokerId]:
    """Return the brokers that have a replica, by rack."""
    racks = {each.id: each.rack or "" for each in snapshot.brokers}
    return sorted({b for each in partitions for b in each.replicas}, key=lambda b: (racks.get(b, "~"), b))


def _matrix(
    snapshot: Snapshot, topic: Topic, partitions: Sequence[Partition], brokers: Sequence[BrokerId]
) -> str:
    racks = {each.id: each.rack or "" for each in snapshot.brokers}
    heads = "".join(
        f"<th scope='col'>{broker_link(each)}<br><small>{escape(racks.get(each, 'down'))}</small></th>"
        for each in brokers
    )
    body = "".join(
        f"<tr><th scope='row'>{_partition_link(topic.name, each.number)}</th>"
        f"{''.join(replica_cell(each, broker) for broker in brokers)}"
        f"<td>{human_bytes(each.size_bytes)}</td></tr>"
        for each in partitions
    )
    return (
        "<div class='wide' tabindex='0' role='region' aria-label='replicas'>"
        f"<table class='matrix'><caption>replicas of {escape(topic.name)}: "
        f"{escape(REPLICA_KEY)}</caption><thead><tr><th scope='col'>partition</th>{heads}"
        f"<th scope='col'>bytes</th></tr></thead><tbody>{body}</tbody></table></div>"
    )


def replica_cell(partition: Partition, broker: BrokerId) -> str:
    """Return what a broker has of a partition as a cell of a matrix."""
    if broker not in partition.replicas:
        return "<td></td>"
    if broker in partition.adding:
        kind, mark, words = "comes", "+", "is being added"
    elif broker in partition.removing:
        kind, mark, words = "goes", "−", "is being removed"
    elif broker == partition.leader:
        kind, mark, words = "leads", "L", "leads"
    elif broker in partition.isr:
        kind, mark, words = "", "F", "follows, in sync"
    else:
        kind, mark, words = "late", "!", "is not in sync"
    shown = f"<u>{mark}</u>" if broker == partition.replicas[0] else mark
    return f"<td class='{kind}' title='broker {broker} {words}'>{shown}</td>"


def _list(snapshot: Snapshot, topic: Topic, partitions: Sequence[Partition]) -> str:
    racks = {each.id: each.rack or "none" for each in snapshot.brokers}
    rows = [
        (
            _partition_link(topic.name, each.number),
            Markup(", ".join(broker_link(broker) for broker in each.replicas)),
            ", ".join(racks.get(broker, "down") for broker in each.replicas),
            "none" if each.leader is None else each.leader,
            ids([broker for broker in each.replicas if broker not in each.isr]) or "–",
            ids(each.adding) or "–",
            ids(each.removing) or "–",
            human_bytes(each.size_bytes),
        )
        for each in partitions
    ]
    heads = ("partition", "replicas", "racks", "leader", "not in sync", "adding", "removing", "bytes")
    return table(heads, rows, left=7, caption="partitions")


def _partition_link(topic: str, number: int) -> Markup:
    return link(str(number), address("/partition", topic=topic, partition=number))
