"""Brokers as a long table, and one broker with its log dirs, throttles and partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.html.page import Tile, paragraph, table, tiles, titled
from restow.sizes import human_bytes
from restow.ui.forms import choice
from restow.ui.frame import Shown, live_parts, pager
from restow.ui.lists import Paged, paged
from restow.ui.pages.broker_rows import broker_table
from restow.ui.pages.cluster import away_banner
from restow.ui.pages.links import ids, partition_link

if TYPE_CHECKING:
    from restow.model import BrokerId, Snapshot
    from restow.ui.sums import BrokerSum
    from restow.ui.watching import ClusterLook

_ROWS = 200
SORTS = ("id", "bytes", "leaders", "replicas", "out of sync")


def brokers_page(look: ClusterLook, rack: str | None, sort: str, number: int) -> Shown:
    """Return the table of all brokers, or of one rack; "-" stands for no rack."""
    if look.sums is None:
        return Shown(title="Brokers", body=away_banner(look) + paragraph("No broker has been seen yet."))
    chosen = [each for each in look.sums.brokers if rack is None or each.rack == rack.removeprefix("-")]
    found = paged(sorted(chosen, key=lambda each: _key(each, sort)), number, _ROWS)
    title = "Brokers" if rack is None else f"Brokers of rack {rack}"
    body = f"<section>{_sorting(rack, sort)}{broker_table(found.rows, look.sums, title)}</section>"
    turn = pager("/brokers", found.number, found.pages, rack=rack, sort=sort)
    return Shown(title=title, body=away_banner(look) + body + turn)


def _key(broker: BrokerSum, sort: str) -> tuple[int, int]:
    sizes = {
        "bytes": -(broker.size_bytes or 0),
        "leaders": -broker.leaders,
        "replicas": -broker.replicas,
        "out of sync": -broker.out_of_sync,
    }
    return sizes.get(sort, 0), broker.id


def _sorting(rack: str | None, sort: str) -> str:
    fields = choice("sort", "Sort by", SORTS, sort)
    kept = "" if rack is None else choice("rack", "Rack", (rack,), rack)
    return f"<form class='row' method='get' action='/brokers'>{kept}{fields}<button>Show</button></form>"


def broker_page(look: ClusterLook, broker: BrokerId, number: int) -> Shown | None:
    """Return one broker's page; None if there is none of that id."""
    if look.sums is None or look.snapshot is None:
        return None
    found = next((each for each in look.sums.brokers if each.id == broker), None)
    if found is None:
        return None
    return Shown(
        title=f"Broker {broker}",
        body=live_parts(broker_parts(look, broker, number)),
        feed=f"/events?page=broker&id={broker}&number={number}",
    )


def broker_parts(look: ClusterLook, broker: BrokerId, number: int) -> dict[str, str]:
    """Return its live parts."""
    sums, snapshot = look.sums, look.snapshot
    found = None if sums is None else next((each for each in sums.brokers if each.id == broker), None)
    if sums is None or snapshot is None or found is None:
        return {"broker": away_banner(look) + paragraph(f"there is no broker {broker} any more", "bad")}
    shown = (
        Tile(
            value=found.state, name=found.address or "no address", kind="bad" if found.state != "up" else ""
        ),
        Tile(value=human_bytes(found.size_bytes), name="on disk"),
        Tile(value=f"{found.leaders:,}", name="leaders"),
        Tile(value=f"{found.replicas:,}", name="replicas"),
        Tile(value=f"{found.out_of_sync:,}", name="out of sync", kind="bad" if found.out_of_sync else "good"),
    )
    row = broker_table([found], sums, "log dirs")
    throttles = list(found.throttles.items())
    parts = [tiles(shown), titled("Log dirs", row)]
    if throttles:
        rates = table(("config", "bytes per second"), throttles, caption="throttles")
        parts.append(titled("Throttles", rates))
    return {
        "broker": away_banner(look) + "".join(parts),
        "partitions": _partitions(snapshot, broker, number),
    }


def _partitions(snapshot: Snapshot, broker: BrokerId, number: int) -> str:
    rows = []
    for name, each in snapshot.all_partitions():
        if broker in each.replicas:
            own = next((copy for copy in each.copies if copy.broker == broker and not copy.future), None)
            rows.append((-(own.size_bytes if own else 0), name, each, own))
    rows.sort(key=lambda row: row[:2])
    found: Paged[tuple[object, ...]] = paged(
        [
            (
                partition_link(name),
                "leader" if each.leader == broker else "follower",
                "yes" if broker in each.isr else "no",
                "?" if own is None else own.log_dir,
                ids(each.replicas),
                human_bytes(None if own is None else own.size_bytes),
            )
            for _, name, each, own in rows
        ],
        number,
        _ROWS,
    )
    heads = ("partition", "is", "in sync", "log dir", "replicas", "bytes")
    turn = pager("/broker", found.number, found.pages, id=broker)
    return titled("Replicas, the largest first", table(heads, found.rows, left=5, caption="replicas"), turn)
