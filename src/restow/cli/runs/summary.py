"""What a run says when it is over: what it moved, how long that took, what is left, what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.runs.view import duration
from restow.cli.shared.drawing import clean, count
from restow.sizes import human_bytes

if TYPE_CHECKING:
    from rich.console import Console

    from restow.execute.progress.outcome import RunOutcome, Summary

_SHOWN = 10


def draw_outcome(page: Console, outcome: RunOutcome) -> None:
    """A few lines. Names and reasons come from the cluster, and are cleaned."""
    reason = f": {clean(outcome.reason)}" if outcome.reason else ""
    page.print(f"{outcome.ending.value}{reason}", style="bold")
    if outcome.summary is not None:
        for name, words in rows_of(outcome.summary):
            page.print(f"{name:<10}{words}")
    for partition, why in list(outcome.dropped.items())[:_SHOWN]:
        page.print(f"left out: {clean(str(partition))}: {clean(why)}")
    if len(outcome.dropped) > _SHOWN:
        page.print(f"left out: {len(outcome.dropped) - _SHOWN:,} more, which `restow resume` would name")
    page.print(clean(outcome.next))


def rows_of(summary: Summary) -> list[tuple[str, str]]:
    """The summary as names and words."""
    moved = count(summary.partitions_moved, "partition")
    rows = [("moved", f"{moved}, {human_bytes(summary.copied_bytes)} copied")]
    took = f"{duration(summary.seconds)}, {human_bytes(summary.mean_rate)}/s in all"
    if summary.busiest_bytes:
        took += (
            f"; {summary.busiest} {human_bytes(summary.busiest_bytes)}, {human_bytes(summary.busiest_rate)}/s"
        )
    rows.append(("took", took))
    if summary.predicted_s is None:
        rows.append(("predicted", "nothing, as there was no throttle to predict it by"))
    else:
        rows.append(("predicted", f"{duration(summary.predicted_s)}, by the busiest broker and the throttle"))
    left = "nothing"
    if summary.partitions_left:
        left = f"{count(summary.partitions_left, 'partition')}, {human_bytes(summary.left_bytes)} to copy"
    rows.append(("left", left))
    return rows
