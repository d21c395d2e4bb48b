"""Snapshots, plans and verdicts as tables: HTML for notebooks, rows for DataFrames."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from restow.html.page import Tile, paragraph, table
from restow.html.plots import changes
from restow.sizes import human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from restow.model.plan import Plan
    from restow.model.snapshot import Snapshot
    from restow.model.verdict import Verdict

_MOVES, _LEFT = 20, 10


def data_frame(rows: Iterable[dict[str, Any]]) -> Any:
    """Return the rows as a pandas DataFrame."""
    try:
        import pandas as pd
    except ImportError:
        raise ImportError("to_pandas needs pandas: pip install pandas (restow[spark] has it too)") from None
    return pd.DataFrame(list(rows))


def snapshot_rows(snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    """Yield one row for each replica."""
    racks = {broker.id: broker.rack for broker in snapshot.brokers}
    for name, partition in snapshot.all_partitions():
        copies = {copy.broker: copy for copy in partition.copies if not copy.future}
        for broker in partition.replicas:
            copy = copies.get(broker)
            yield {
                "topic": name.topic,
                "partition": name.partition,
                "broker": broker,
                "rack": racks.get(broker),
                "leader": broker == partition.leader,
                "preferred": broker == partition.replicas[0],
                "in_sync": broker in partition.isr,
                "log_dir": None if copy is None else copy.log_dir,
                "size_bytes": None if copy is None else copy.size_bytes,
            }


def plan_tiles(plan: Plan, *, moves: int, waves: int, bytes_to_copy: int) -> Iterator[Tile]:
    """Yield what stands above a plan on its page. The plan may be one without its moves."""
    yield Tile(value=f"{moves:,}", name="moves")
    yield Tile(value=f"{waves:,}", name="waves")
    yield Tile(value=human_bytes(bytes_to_copy), name="to copy")
    if plan.bound_bytes:
        least = f"of the least possible, {human_bytes(plan.bound_bytes)}"
        yield Tile(value=f"{bytes_to_copy / plan.bound_bytes:.4f} ×", name=least)
    if plan.leaves:
        yield Tile(value=f"{len(plan.leaves):,}", name="left behind", kind="bad")


def plan_rows(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield one row for each move, in the order in which they begin."""
    for move in plan.moves_in_order:
        yield {
            "topic": move.partition.topic,
            "partition": move.partition.partition,
            "before": move.before,
            "after": move.after,
            "adding": move.adding,
            "removing": move.removing,
            "bytes_to_copy": move.told_bytes,
            "reason": move.reason,
        }


def snapshot_html(snapshot: Snapshot) -> str:
    """One row for each broker."""
    replicas: Counter[int] = Counter()
    leaders: Counter[int | None] = Counter()
    size: Counter[int] = Counter()
    behind = 0
    for partition in snapshot.partitions:
        replicas.update(partition.replicas)
        leaders[partition.leader] += 1
        behind += len(partition.isr) < len(partition.replicas)
        for copy in partition.copies:
            size[copy.broker] += copy.size_bytes
    rows = [
        (
            broker.id,
            broker.rack or "",
            f"{replicas[broker.id]:,}",
            f"{leaders[broker.id]:,}",
            human_bytes(None if broker.id in snapshot.unanswered else size[broker.id]),
            "failed" if any(each.failed for each in broker.log_dirs) else len(broker.log_dirs),
        )
        for broker in snapshot.brokers
    ]
    return (
        paragraph(
            f"cluster {snapshot.cluster_id}: {len(snapshot.brokers):,} brokers, {len(snapshot.topics):,} "
            f"topics, {len(snapshot.partitions):,} partitions, {behind:,} under-replicated"
        )
        + table(("broker", "rack", "replicas", "leaders", "bytes", "log dirs"), rows)
    )  # fmt: skip


def plan_html(plan: Plan) -> str:
    """What it copies, what that makes of the brokers, and the first moves."""
    before: Counter[int] = Counter()
    after: Counter[int] = Counter()
    for move in plan.moves:
        before.update({broker: move.own_size(broker) for broker in move.before})
        after.update({broker: move.own_size(broker) for broker in move.after})
    brokers = sorted({broker for move in plan.moves for broker in (*move.before, *move.after)})
    moves = [
        (move.partition, _list(move.before), _list(move.after), human_bytes(move.told_bytes), move.reason)
        for move in plan.moves_in_order
    ]
    parts = [
        paragraph(
            f"{plan.title or 'plan'}: {len(plan.moves):,} moves, {human_bytes(plan.bytes_to_copy)} to copy"
        ),
        changes(
            [(f"broker {broker}", before[broker], after[broker]) for broker in brokers],
            label="bytes of each broker before and after",
        ),
        table(("partition", "before", "after", "to copy", "why"), moves, most=_MOVES),
    ]
    if plan.leaves:
        parts += [
            paragraph(f"{len(plan.leaves):,} partitions are left behind"),
            table(("partition", "why"), [(each.partition, each.why) for each in plan.leaves], most=_LEFT),
        ]
    return "".join(parts)


def verdict_html(verdict: Verdict) -> str:
    """One row for each check."""
    rows = [(check.outcome.value, check.name, check.evidence, check.advice) for check in verdict.checks]
    says = "yes" if verdict.holds else "no"
    checks = table(("", "check", "what was seen", "what to do"), rows)
    return paragraph(f"{verdict.subject}: {says}") + checks + "".join(map(paragraph, verdict.notes))


def _list(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))
