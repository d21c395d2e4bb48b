"""How a plan is drawn: a line of sums, brokers before and after, log dirs, and the moves if wanted."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from restow.cli.shared.drawing import clean, ends_of, heading, put
from restow.cli.shared.tables import NUMBER, Grid
from restow.plan.explain.groups import group_lines
from restow.plan.explain.view import limits_told, seconds_at, times_told
from restow.plan.files.text import digest_of
from restow.plan.judge.waves import told
from restow.sizes import count, human_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from restow.model import Move, Plan
    from restow.plan.explain.groups import TouchedGroup
    from restow.plan.explain.view import PlanView
    from restow.plan.judge.evaluate import PlanViolation

_RATES = (10_000_000, 50_000_000, 200_000_000)
"""The rates for expected times when no throttle is given."""
_ROWS = 40


def document(
    plan: Plan,
    view: PlanView,
    rate: int | None = None,
    violations: Sequence[PlanViolation] = (),
    groups: Sequence[TouchedGroup] = (),
) -> dict[str, object]:
    """Return the document that `--json` prints."""
    return {
        "title": plan.title,
        "cluster_id": plan.cluster_id,
        "created_ms": plan.created_ms,
        "digest": digest_of(plan),
        "limits": asdict(plan.limits),
        "topic_ids": dict(plan.topic_ids),
        "promises": [asdict(each) for each in plan.promises],
        "leaves": [
            {"topic": each.partition.topic, "partition": each.partition.partition, "why": each.why}
            for each in plan.leaves
        ],
        "bound_bytes": plan.bound_bytes,
        "estimated_s": {str(each): seconds_at(view, each) for each in _rates(rate)},
        **asdict(view),
        "violations": [asdict(each) for each in violations],
        "groups": [asdict(each) for each in groups],
        "moved": [
            {
                "topic": move.partition.topic,
                "partition": move.partition.partition,
                "before": list(move.before),
                "after": list(move.after),
                "bytes_to_copy": move.told_bytes,
                "reason": move.reason,
            }
            for move in plan.moves
        ],
    }


def draw(
    console: Console,
    plan: Plan,
    view: PlanView,
    *,
    moves: bool = False,
    rate: int | None = None,
) -> None:
    """Draw tables and a few sentences."""
    if plan.title:
        put(console, clean(plan.title), style="bold")
    if not plan.moves:
        rest = " but what stays behind" if plan.leaves else ""
        put(console, f"Nothing to move: everything{rest} is as wanted already.")
    else:
        waves = count(view.waves, "wave")
        put(
            console,
            f"{count(view.moves, 'partition')} in {waves}, {human_bytes(view.bytes_to_copy)} to copy"
            + (f"; {view.reordered:,} of them copy nothing" if view.reordered else "")
            + (f"; the size of {view.unsized:,} of them is not known" if view.unsized else ""),
            style="bold",
        )
        if view.bytes_to_copy:
            put(console, times(view, rate), style="dim")
        put(console, f"up to {limits_told(plan.limits)}", style="dim")
        _draw_brokers(console, view)
        _draw_dirs(console, view)
    draw_leaves(console, plan)
    if moves:
        _draw_moves(console, plan.moves)


def draw_judgement(console: Console, violations: Sequence[PlanViolation]) -> None:
    """Print the judge's verdict in a line."""
    verdict = f"broken: {clean(told(violations))}" if violations else "nothing is broken"
    put(console, f"judge: {verdict}", style="red" if violations else "dim")


def draw_groups(console: Console, groups: Sequence[TouchedGroup]) -> None:
    """Draw what a plan means for consumer groups, in a few lines."""
    if groups:
        heading(console, "Consumer groups")
        for line in group_lines(groups):
            put(console, f"  {clean(line)}")


def draw_leaves(console: Console, plan: Plan) -> None:
    """Draw the partitions that the plan leaves behind, each with the reason."""
    if not plan.leaves:
        return
    heading(console, "Left behind")
    for each in plan.leaves[:_ROWS]:
        console.print(clean(f"  {each.partition}: {each.why}"), style="yellow", soft_wrap=True)
    if len(plan.leaves) > _ROWS:
        console.print(f"  and {len(plan.leaves) - _ROWS:,} more", style="yellow")


def _rates(rate: int | None) -> Sequence[int]:
    return _RATES if rate is None else (rate,)


def times(view: PlanView, rate: int | None) -> str:
    """Return the expected time at this rate, or at some usual ones."""
    found = times_told(view, _rates(rate))
    return f"{'copies in' if found.startswith('under') else 'takes at least'} {found} per broker"


def _draw_brokers(console: Console, view: PlanView) -> None:
    heading(console, "Brokers" if view.whole_cluster else "Brokers, as far as the plan's partitions go")
    names = ("broker", "before", "after", "replicas", "first of", "receives", "sends", "between dirs")
    table = Grid(*((name, NUMBER) for name in names))
    for each in ends_of(view.brokers, _ROWS):
        table.add_row(
            str(each.broker),
            human_bytes(each.before.size_bytes),
            human_bytes(each.after.size_bytes),
            f"{each.before.replicas:,} → {each.after.replicas:,}",
            f"{each.before.preferred:,} → {each.after.preferred:,}",
            *(
                human_bytes(size) if size else "-"
                for size in (each.received_bytes, each.sent_bytes, each.dir_bytes)
            ),
        )
    console.print(table)


def _draw_dirs(console: Console, view: PlanView) -> None:
    if not view.dirs:
        return
    heading(console, "Log dirs")
    for each in ends_of(view.dirs, _ROWS):
        put(
            console,
            f"  broker {each.broker} {clean(each.path)}: "
            f"{human_bytes(each.in_bytes)} in, {human_bytes(each.out_bytes)} out",
        )


def _draw_moves(console: Console, moves: Sequence[Move]) -> None:
    heading(console, "Moves")
    for move in moves:
        copied = f", {human_bytes(move.told_bytes)}" if move.told_bytes != 0 else ", nothing to copy"
        dirs = "".join(f", broker {broker} to {path}" for broker, path in sorted(move.dir_changes.items()))
        why = f" ({move.reason})" if move.reason else ""
        line = f"  {move.partition}: {list(move.before)} → {list(move.after)}{dirs}{copied}{why}"
        put(console, clean(line))
