"""One partition: its replicas, and its life: where it was, where it is, and where it will be."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from restow.html.page import Markup, Tile, link, table, tiles, titled
from restow.model import Partition
from restow.sizes import human_bytes
from restow.ui.addresses import plan_address
from restow.ui.frame import Shown, address, at, live_parts, run_link
from restow.ui.pages.cluster import away_banner
from restow.ui.pages.links import broker_link, ids
from restow.ui.pages.topics import REPLICA_KEY, replica_cell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.model import BrokerId, TopicPartition
    from restow.ui.large_files import ShownPlan
    from restow.ui.moves import ShownMove
    from restow.ui.plan_store import StoredPlan
    from restow.ui.run_books import RunBook, RunBooks
    from restow.ui.watching import ClusterLook

_LIFE = (
    "Its replicas before and after each run of the journals, now, and as runs and plans would have them. "
    f"Other tools leave no journal. {REPLICA_KEY}"
)


@dataclass(frozen=True, slots=True)
class _Stage:
    """A moment in its life."""

    when: Markup
    what: Markup
    partition: Partition


def partition_page(
    look: ClusterLook, name: TopicPartition, books: RunBooks, plans: Sequence[tuple[StoredPlan, ShownPlan]]
) -> Shown | None:
    """Return one partition's page; None if there is no such partition."""
    if look.snapshot is None or look.snapshot.partition(name) is None:
        return None
    parts = partition_parts(look, name, books, plans)
    back = f"<p>{link(f'Topic {name.topic}', address('/topic', name=name.topic))}</p>"
    return Shown(
        title=f"Partition {name}",
        body=live_parts(parts) + back,
        feed=address("/events", page="partition", topic=name.topic, partition=name.partition),
    )


def partition_parts(
    look: ClusterLook, name: TopicPartition, books: RunBooks, plans: Sequence[tuple[StoredPlan, ShownPlan]]
) -> dict[str, str]:
    """Return its live parts."""
    found = None if look.snapshot is None else look.snapshot.partition(name)
    if found is None:
        return {
            "partition": away_banner(look) + f"<p class='bad'>There is no {escape(str(name))} any more.</p>"
        }
    leader = "none" if found.leader is None else str(found.leader)
    shown = (
        Tile(value=ids(found.replicas), name="replicas"),
        Tile(value=leader, name="leader", kind="bad" if found.leader is None else ""),
        Tile(
            value=ids(found.isr) or "none",
            name="in sync",
            kind="bad" if len(found.isr) < len(found.replicas) else "good",
        ),
        Tile(value=human_bytes(found.size_bytes), name="one replica"),
    )
    copies = [
        (
            broker_link(each.broker),
            each.log_dir,
            human_bytes(each.size_bytes),
            f"{each.lag_messages:,}",
            "is being moved into this log dir" if each.future else "",
        )
        for each in found.copies
    ]
    heads = ("broker", "log dir", "bytes", "lag in messages", "")
    stages = [*_was(name, books), *_is(look, found), *_will_be(name, found, books, plans)]
    return {
        "partition": away_banner(look)
        + tiles(shown)
        + titled("Replicas", table(heads, copies, left=2, caption="replicas")),
        "life": titled("Its life", _matrix(stages), note=_LIFE),
    }


def _move_of(book: RunBook, name: TopicPartition) -> ShownMove | None:
    return book.order.of([name]).get(name)


def _was(name: TopicPartition, books: RunBooks) -> Iterator[_Stage]:
    last: tuple[BrokerId, ...] = ()
    for book in reversed(books.all()):
        move, times = _move_of(book, name), book.times.get(name)
        if move is None or times is None:
            continue
        run = run_link(book.name)
        if move.before != last:
            yield _Stage(at(times.begun_ms), Markup(f"before run {run}"), _resting(move.before))
        if times.dropped:
            left_out = f"run {run} left it out: {escape(times.dropped)}"
            yield _Stage(at(times.begun_ms), Markup(left_out), _resting(move.before))
        elif times.ended_ms is not None:
            last = move.after
            yield _Stage(at(times.ended_ms), Markup(f"after run {run}"), _resting(move.after))


def _is(look: ClusterLook, found: Partition) -> Iterator[_Stage]:
    assert look.snapshot is not None  # noqa: S101  (the partition was found in it)
    yield _Stage(at(look.snapshot.taken_ms), Markup("<strong>now</strong>"), found)


def _will_be(
    name: TopicPartition, found: Partition, books: RunBooks, plans: Sequence[tuple[StoredPlan, ShownPlan]]
) -> Iterator[_Stage]:
    soon = Markup("–")
    target = tuple(each for each in found.replicas if each not in found.removing)
    if found.moving:
        yield _Stage(soon, Markup("when its reassignment ends"), _resting(target))
    for book in books.all():
        move = _move_of(book, name)
        times = book.times.get(name)
        waits = move is not None and (times is None or (times.ended_ms is None and not times.dropped))
        if move is not None and waits and books.is_active(book) and move.after != target:
            yield _Stage(soon, Markup(f"when run {run_link(book.name)} ends"), _resting(move.after))
    for stored, plan in plans:
        move = plan.moves.of([name]).get(name)
        if move is not None and move.after != found.replicas:
            made = link(stored.title, plan_address(stored.id))
            yield _Stage(soon, Markup(f"if the plan {made} is run"), _resting(move.after))


def _resting(replicas: tuple[BrokerId, ...]) -> Partition:
    """Return a partition as it is when nothing is wrong: all in sync, led by its first replica."""
    return Partition(0, replicas, replicas, replicas[0] if replicas else None)


def _matrix(stages: Sequence[_Stage]) -> str:
    brokers = sorted({broker for each in stages for broker in each.partition.replicas})
    heads = "".join(f"<th scope='col'>{broker_link(each)}</th>" for each in brokers)
    rows = "".join(
        f"<tr><th scope='row'>{each.what}</th><td>{each.when}</td>"
        f"{''.join(replica_cell(each.partition, broker) for broker in brokers)}"
        f"<td>{ids(each.partition.replicas)}</td></tr>"
        for each in stages
    )
    return (
        "<div class='wide' tabindex='0' role='region' aria-label='its life'><table class='matrix'>"
        f"<caption>{escape(_LIFE)}</caption><thead><tr><th scope='col'>moment</th><th scope='col'>when</th>"
        f"{heads}<th scope='col'>replicas</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
