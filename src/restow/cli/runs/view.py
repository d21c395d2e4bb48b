"""The picture of a run: progress, rate, time left, and stalled moves."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from restow.cli.shared.drawing import PRETTY, bar, clean
from restow.cli.shared.tables import BAR, LABEL, NAME, NUMBER, Grid
from restow.execute.predict.prediction import error_told, range_told
from restow.execute.progress.waited import why_nothing_copies
from restow.sizes import count, human_bytes, human_duration, some

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from restow.execute.predict.prediction import PredictedNow
    from restow.execute.progress.outcome import RunOutcome, Summary
    from restow.execute.progress.progress import BrokerPart, Copying, DirPart
    from restow.execute.progress.status import RunStatus


_BAR, _SMALL_BAR = 24, 16
_ROWS = 12
_A_DAY_S = 86_400


def picture(status: RunStatus) -> RenderableType:
    """Draw the whole picture."""
    report = status.report
    parts: list[RenderableType] = [_head(status), _bytes(status)]
    if status.predicted is not None and not status.ended:
        parts.append(Text(predicted_line(status.predicted), style="dim"))
    if report.brokers:
        parts.append(_brokers(report.brokers))
    if report.dirs:
        parts.append(_dirs(report.dirs))
    if report.copying:
        parts.append(_replicas(report.copying))
    parts += [
        Text(f"! {clean(str(each))}: {clean(each.advice)}", style="red") for each in report.still[:_ROWS]
    ]
    parts.append(_foot(status))
    if status.others is not None:
        parts += [Text(), Text("not of this run:", style="yellow"), picture(status.others)]
    return Group(*parts)


def _head(status: RunStatus) -> Text:
    total = status.steps_done + status.steps_left
    text = Text(f"run {clean(status.run)}" if status.run else "moves under way", style="bold")
    text.append(
        f"   {status.steps_done:,} of {count(total, 'step')} done, {status.under_way:,} under way", ""
    )
    if throttle := _throttle(status):
        text.append(f"   {throttle}")
    if status.ended:
        text.append(f"\nended: {clean(status.ended)}", style="yellow")
    elif status.paused:
        text.append(f"\npaused: {clean(status.paused)}", style="yellow")
    elif status.waits:
        text.append(f"\nwaits: {clean(status.waits)}", style="yellow")
    return text


def _throttle(status: RunStatus) -> str:
    """Return the present throttle: between brokers if any copy from each other, else between log dirs."""
    within = bool(status.report.dirs) and not status.report.brokers
    rate = status.dir_throttle if within else status.throttle
    if rate is None:
        return ""
    source = " (auto)" if status.auto else f" (of {clean(status.by_hour)})" if status.by_hour else ""
    return f"throttle {human_bytes(rate)}/s{source}"


def _bytes(status: RunStatus) -> Text:
    report = status.report
    left = "   " + until(report.eta_s)
    if status.ended is not None:
        left = ""
    elif status.paused and report.eta_s is None:
        left = "   time left unknown while paused"
    elif report.eta_s is None and (status.waits or report.still):
        some_move = not status.waits and why_nothing_copies(report) is None
        left = f"   time left unknown while {'not all' if some_move else 'nothing'} can move"
    text = Text(f"{_bar(report.done_bytes, report.to_do_bytes)} ", style="green")
    text.append(
        f"{human_bytes(report.done_bytes)} of {human_bytes(report.to_do_bytes)}   "
        f"{human_bytes(report.rate)}/s in all{left}",
        style="default",
    )
    return text


def predicted_line(now: PredictedNow) -> str:
    """Return the prediction beside what happened, like `predicted 79 s, until 14:02:31; 4 s behind`."""
    if now.ends_ms is None:
        return "predicted never to end"
    until = datetime.fromtimestamp(now.ends_ms / 1000).astimezone()
    day = "" if now.seconds.p50 < _A_DAY_S else f"{until:%Y-%m-%d} "
    guess = ", a guess" if now.guessed else ""
    text = f"predicted {human_duration(now.seconds.p50)}{guess}, until {day}{until:%H:%M:%S}"
    if now.ahead_s is None:
        return text
    if abs(now.ahead_s) < 1:
        return f"{text}; in time"
    return f"{text}; {human_duration(abs(now.ahead_s))} {'ahead' if now.ahead_s > 0 else 'behind'}"


def _bar(value: int, maximum: int, width: int = _BAR) -> str:
    return bar(value, maximum, width, PRETTY).ljust(width, "·")


def until(eta_s: float | None) -> str:
    """Return the time left, like `3 min left`."""
    return "time left not known yet" if eta_s is None else f"{human_duration(eta_s)} left"


def _brokers(brokers: tuple[BrokerPart, ...]) -> Grid:
    """Draw the brokers with most bytes left first: they decide when the run ends."""
    table = Grid(
        ("broker", LABEL),
        ("", BAR),
        ("received", NUMBER),
        ("of", NUMBER),
        ("sent", NUMBER),
        ("of", NUMBER),
        ("moving", NUMBER),
    )
    busy = [each for each in brokers if each.to_do_bytes or each.to_send_bytes or each.replicas]
    left = sorted(
        busy,
        key=lambda e: (-max(e.to_do_bytes - e.done_bytes, e.to_send_bytes - e.sent_bytes), e.broker),
    )
    for each in left[:_ROWS]:
        done, total = each.done_bytes + each.sent_bytes, each.to_do_bytes + each.to_send_bytes
        table.add_row(
            str(each.broker),
            _bar(done, total, _SMALL_BAR),
            *(
                _size(size)
                for size in (each.done_bytes, each.to_do_bytes, each.sent_bytes, each.to_send_bytes)
            ),
            str(each.replicas),
        )
    _tell_of_more(table, len(left))
    return table


def _dirs(dirs: tuple[DirPart, ...]) -> Grid:
    table = Grid(
        ("to log dir", NAME),
        ("broker", LABEL),
        ("", BAR),
        ("copied", NUMBER),
        ("of", NUMBER),
        ("moving", NUMBER),
    )
    for each in sorted(dirs, key=lambda e: e.done_bytes - e.to_do_bytes)[:_ROWS]:
        table.add_row(
            clean(each.path),
            str(each.broker),
            _bar(each.done_bytes, each.to_do_bytes, _SMALL_BAR),
            human_bytes(each.done_bytes),
            human_bytes(each.to_do_bytes),
            str(each.replicas),
        )
    _tell_of_more(table, len(dirs))
    return table


def _replicas(copying: tuple[Copying, ...]) -> Grid:
    table = Grid(
        ("replica", NAME),
        ("from", NUMBER),
        ("to", NUMBER),
        ("copied", NUMBER),
        ("of", NUMBER),
        ("behind", NUMBER),
        ("", LABEL),
    )
    slowest = sorted(copying, key=lambda each: each.copied_bytes - each.size_bytes)
    for each in slowest[:_ROWS]:
        where = clean(str(each.partition)) + (f" into {clean(each.log_dir)}" if each.log_dir else "")
        table.add_row(
            where,
            "-" if each.leader is None else str(each.leader),
            str(each.broker),
            human_bytes(each.copied_bytes if each.answered else None),
            human_bytes(each.size_bytes),
            human_bytes(each.behind_bytes if each.answered else None),
            "in sync" if each.in_sync else "",
        )
    _tell_of_more(table, len(copying))
    return table


def _size(size_bytes: int) -> str:
    return human_bytes(size_bytes) if size_bytes else "-"


def _tell_of_more(table: Grid, rows: int) -> None:
    if rows > _ROWS:
        table.caption = f"and {rows - _ROWS:,} more"


def _foot(status: RunStatus) -> Text:
    ill = status.under_replicated or status.offline or status.silent
    who = f"{'brokers' if len(status.silent) > 1 else 'broker'} {', '.join(map(str, status.silent))}"
    silent = f", no answer from {who}" if status.silent else ""
    return Text(
        f"{status.under_replicated:,} under-replicated, {status.offline:,} offline, "
        f"requests take {status.latency_s * 1000:.0f} ms{silent}",
        style="red" if ill else "dim",
    )


_SHOWN = 10


def draw_outcome(page: Console, outcome: RunOutcome) -> None:
    """Draw the outcome in a few lines. Names and reasons come from the cluster, so they are cleaned."""
    reason = f": {clean(outcome.reason)}" if outcome.reason else ""
    page.print(f"{outcome.ending.value}{reason}", style="bold")
    if outcome.summary is not None:
        for name, words in rows_of(outcome.summary):
            page.print(f"{name:<10}{words}")
    if outcome.under_way:
        page.print(f"left under way: {clean(some(outcome.under_way))}")
    for partition, why in list(outcome.dropped.items())[:_SHOWN]:
        page.print(f"left out: {clean(str(partition))}: {clean(why)}")
    if len(outcome.dropped) > _SHOWN:
        page.print(f"left out: {len(outcome.dropped) - _SHOWN:,} more, which `restow resume` would name")
    page.print(clean(outcome.next))


def rows_of(summary: Summary) -> list[tuple[str, str]]:
    """Return the summary as pairs of label and text."""
    moved = count(summary.partitions_moved, "partition")
    before = summary.partitions_moved_before
    earlier = f"; {before:,} before it was resumed" if before else ""
    rows = [("moved", f"{moved}, {human_bytes(summary.copied_bytes)} copied{earlier}")]
    took = f"{human_duration(summary.seconds)}, {human_bytes(summary.mean_rate)}/s in all"
    if summary.busiest_bytes:
        took += (
            f"; {summary.busiest} {human_bytes(summary.busiest_bytes)}, {human_bytes(summary.busiest_rate)}/s"
        )
    rows.append(("took", took))
    if summary.prediction is not None:
        took_s = summary.seconds if summary.done else None
        off = "" if took_s is None else f"; it took {human_duration(took_s)}"
        told = error_told(summary.predicted_s, took_s, summary.steered, summary.held, summary.waited)
        rows.append(("predicted", range_told(summary.prediction) + off + told))
    left = "nothing"
    if summary.partitions_left:
        left = f"{count(summary.partitions_left, 'partition')}, {human_bytes(summary.left_bytes)} to copy"
    rows.append(("left", left))
    return rows
