"""The cluster: a summary first, then racks and brokers, and what needs attention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.html.page import Markup, Section, Tile, link, paragraph, section, table, tiles, titled
from restow.html.plots import amount, meter
from restow.sizes import count, human_bytes
from restow.ui.addresses import run_address
from restow.ui.frame import Shown, address, at, live_parts
from restow.ui.pages.broker_rows import broker_table
from restow.ui.pages.lake import lake_part
from restow.ui.pages.links import broker_link, ids, partition_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.execute.progress.status import RunStatus
    from restow.model import Snapshot, TopicPartition
    from restow.plan.explain.causes import BandCause
    from restow.plan.explain.explain import Explanation
    from restow.ui.sums import BrokerSum, ClusterSums
    from restow.ui.watching import ClusterLook

_MOST_BROKERS_IN_FULL = 60
_MOST_IN_GRID = 5_000
_ROWS = 20


def cluster_page(look: ClusterLook, run: RunStatus | None) -> Shown:
    """Return the page."""
    parts = cluster_parts(look, run)
    return Shown(
        title="Cluster",
        body=live_parts(parts),
        feed="/events?page=cluster",
        incomplete=look.snapshot is None,
    )


def cluster_parts(look: ClusterLook, run: RunStatus | None) -> dict[str, str]:
    """Return its live parts by name."""
    if look.snapshot is None or look.sums is None:
        return {"summary": away_banner(look) or "<section><p>Looking at the cluster …</p></section>"}
    sums = look.sums
    many = len(sums.brokers) > _MOST_BROKERS_IN_FULL
    return {
        "summary": away_banner(look) + tiles(_tiles(look.snapshot, sums)) + _facts(look.snapshot, sums),
        "attention": "".join(map(section, _attention(look.snapshot, sums))),
        "run": _run(run),
        "brokers": _many(sums, look.bands) if many else "".join(_racks(sums)),
        "bands": _bands(look),
        "lake": lake_part(look.lake),
    }


def away_banner(look: ClusterLook) -> str:
    """Return what to know while the cluster is away: since when, why, and what is shown meanwhile."""
    if look.away_since_ms is None:
        return ""
    known = (
        f"<p>Below is the last known state, of {at(look.snapshot.taken_ms)}.</p>"
        if look.snapshot is not None
        else ""
    )
    return (
        f"<div class='banner' role='alert'><p><strong>The cluster is away</strong> since "
        f"{at(look.away_since_ms)}.</p>{paragraph(look.why_away)}{known}"
        "<p>This page asks again by itself.</p></div>"
    )


def _tiles(snapshot: Snapshot, sums: ClusterSums) -> Iterator[Tile]:
    up = sum(each.address is not None for each in sums.brokers)
    down = len(sums.brokers) - up
    yield Tile(
        value=f"{up:,}" if not down else f"{up:,} of {len(sums.brokers):,}",
        name="brokers up",
        kind="bad" if down else "",
    )
    yield Tile(value=f"{len(snapshot.topics):,}", name="topics")
    yield Tile(value=f"{sums.partitions:,}", name="partitions")
    yield Tile(value=human_bytes(sums.size_bytes), name="in all replicas")
    yield Tile(
        value=f"{sums.under_replicated:,}",
        name="under-replicated",
        kind="bad" if sums.under_replicated else "good",
    )
    yield Tile(value=f"{sums.offline:,}", name="offline", kind="bad" if sums.offline else "good")
    yield Tile(value=f"{sums.moving:,}", name="moving now")
    yield Tile(value=f"{sums.not_preferred:,}", name="not led by their first replica")


def _facts(snapshot: Snapshot, sums: ClusterSums) -> str:
    controller = "not known" if snapshot.controller is None else f"node {snapshot.controller}"
    throttled = "none" if not sums.throttles else f"{sums.throttles:,} brokers and topics have one"
    facts = f"Cluster {snapshot.cluster_id}. Controller: {controller}. Throttles: {throttled}."
    return paragraph(facts) + f"<p class='note'>As of {at(snapshot.taken_ms)}.</p>"


def _attention(snapshot: Snapshot, sums: ClusterSums) -> Iterator[Section]:
    for title, number, some in (
        ("Offline partitions", sums.offline, sums.some_offline),
        ("Under-replicated partitions", sums.under_replicated, sums.some_under_replicated),
        ("Partitions that move now", sums.moving, sums.some_moving),
    ):
        if number:
            yield Section(title=title, parts=(_partitions(snapshot, some, number),))
    unseen = [
        f"DESCRIBE is not allowed on {count(len(snapshot.hidden_topics), 'topic')}: they are not shown"
        if snapshot.hidden_topics
        else "",
        f"missing ACLs: {', '.join(snapshot.denied[:5])}" if snapshot.denied else "",
        f"brokers that did not describe their log dirs: {', '.join(map(str, snapshot.unanswered[:20]))}"
        if snapshot.unanswered
        else "",
    ]
    if any(unseen):
        yield Section(title="Not seen", parts=tuple(paragraph(each, "bad") for each in unseen if each))


def _partitions(snapshot: Snapshot, names: Sequence[TopicPartition], number: int) -> str:
    rows = []
    for name in names[:_ROWS]:
        found = snapshot.partition(name)
        if found is None:
            continue
        leader = "none" if found.leader is None else str(found.leader)
        missing = [each for each in found.replicas if each not in found.isr]
        rows.append(
            (
                partition_link(name),
                ids(found.replicas),
                leader,
                ids(missing) or "–",
                ids(found.adding) or "–",
                ids(found.removing) or "–",
            )
        )
    heads = ("partition", "replicas", "leader", "not in sync", "adding", "removing")
    more = paragraph(f"and {number - len(rows):,} more") if number > len(rows) else ""
    return table(heads, rows, caption="partitions") + more


def _run(run: RunStatus | None) -> str:
    if run is None or run.ended is not None:
        return ""
    report = run.report
    words = f"{human_bytes(report.done_bytes)} of {human_bytes(report.to_do_bytes)}"
    name = link(f"Run {run.run}", run_address(run.run)) if run.run else Markup("Moves of another tool")
    shown = meter(report.done_bytes, report.to_do_bytes, words, "fine")
    paused = f", paused: {run.paused}" if run.paused else ""
    steps = f"{run.steps_done:,} of {count(run.steps_done + run.steps_left, 'step')} done{paused}"
    return f"<section><h2>Under way</h2><p>{name}: {shown} {words}</p>{paragraph(steps)}</section>"


def _bands(look: ClusterLook) -> str:
    bands = look.bands
    if bands is None or not bands.goals:
        return ""
    goals = [
        (
            goal.name,
            "any" if goal.allowed is None else f"{goal.allowed[0]:.2f} to {goal.allowed[1]:.2f}",
            f"{goal.before[1]:.2f}",
            f"{goal.before[0]:.2f}",
            f"{goal.out_of_band:,}",
        )
        for goal in bands.goals
    ]
    units = {goal.name: goal.unit for goal in bands.goals}
    rows = [
        (broker_link(each.broker), each.goal, f"{each.ratio:.2f} ×", _causes(causes, units[each.goal]))
        for each, causes in look.causes
    ]
    parts = [
        table(
            ("goal", "allowed", "least of a share", "most of a share", "out of band"), goals, caption="goals"
        )
    ]
    if rows:
        parts.append("<h3>Furthest out of band, and by which partitions</h3>")
        heads = ("broker", "goal", "of its share", "its heaviest replicas, in parts of its share")
        parts.append(table(heads, rows, left=4, caption="brokers out of band"))
        more = len(bands.unmet) - len(rows)
        parts.append(paragraph(f"and {more:,} more") if more > 0 else "")
    note = "Every goal gives each broker a share; a band around it is allowed."
    return titled("Balance", *parts, note=note)


def _causes(causes: Sequence[BandCause], unit: str) -> Markup:
    """Return the replicas that put a broker above its band; one below has too little of everything."""
    if not causes:
        return Markup("<span class='note'>it has too little</span>")
    return Markup(
        "<br>".join(
            f"{partition_link(each.partition)} {each.share:.1%}, {amount(each.amount, unit)}"
            f"{', leads' if each.leads else ''}"
            for each in causes
        )
    )


def _racks(sums: ClusterSums) -> Iterator[str]:
    for rack, brokers in sums.racks.items():
        title = f"Rack {rack}" if rack else "Brokers" if len(sums.racks) == 1 else "Brokers without a rack"
        if not rack and all(each.address is None for each in brokers):
            title = "Brokers that are down"  # only live brokers tell their racks
        yield titled(title, broker_table(brokers, sums, title))


def _many(sums: ClusterSums, bands: Explanation | None) -> str:
    """Return racks as sums, and every broker as one small square."""
    rows = [_rack_row(rack, brokers) for rack, brokers in sums.racks.items()]
    heads = ("rack", "brokers", "down", "bytes per broker: least", "mean", "most", "leaders", "replicas")
    out = {each.broker for each in bands.unmet} if bands is not None else set()
    squares = "".join(_square(each, out) for each in sums.brokers[:_MOST_IN_GRID])
    key = "Each square is a broker: · in its bands, ▲ out of band, ✕ down. The link has its numbers."
    return titled(
        "Racks and brokers",
        table(heads, rows, caption="racks"),
        f"<div class='grid-of-brokers'>{squares}</div>",
        f"<p>{link('All brokers as a table', '/brokers')}</p>",
        note=key,
    )


def _rack_row(rack: str, brokers: Sequence[BrokerSum]) -> tuple[object, ...]:
    known = [each.size_bytes for each in brokers if each.size_bytes is not None] or [0]
    return (
        link(rack or "no rack", address("/brokers", rack=rack or "-")),
        f"{len(brokers):,}",
        f"{sum(each.address is None for each in brokers):,}",
        *map(human_bytes, (min(known), sum(known) / len(known), max(known))),
        f"{sum(each.leaders for each in brokers):,}",
        f"{sum(each.replicas for each in brokers):,}",
    )


def _square(broker: BrokerSum, out: set[int]) -> str:
    kind, mark = ("down", "✕") if broker.address is None else ("out", "▲") if broker.id in out else ("", "·")
    words = {"down": ", down", "out": ", out of band"}.get(kind, "")
    name = f"broker {broker.id}{words}"
    return f"<a class='{kind}' href='/broker?id={broker.id}' title='{name}' aria-label='{name}'>{mark}</a>"
