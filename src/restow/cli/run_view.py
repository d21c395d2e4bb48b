"""A run as a picture: how far, how fast, until when, and what stands still."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from restow.cli.drawing import PRETTY, bar, clean, count
from restow.cli.sizes import human_bytes
from restow.cli.table_view import BAR, LABEL, NAME, NUMBER, Grid

if TYPE_CHECKING:
    from rich.console import RenderableType

    from restow.execute.progress import BrokerPart, Copying, Eta
    from restow.execute.standing import Standing

_BAR = 24
_ROWS = 12


def picture(standing: Standing) -> RenderableType:
    """All of it."""
    report = standing.report
    parts: list[RenderableType] = [_head(standing), _bytes(standing)]
    if report.brokers:
        parts.append(_brokers(report.brokers))
    if report.copying:
        parts.append(_replicas(report.copying))
    parts += [
        Text(f"! {clean(str(each))}: {clean(each.advice)}", style="red") for each in report.still[:_ROWS]
    ]
    parts.append(_foot(standing))
    return Group(*parts)


def _head(standing: Standing) -> Text:
    total = standing.steps_done + standing.steps_left
    text = Text(f"run {standing.run}" if standing.run else "moves under way", style="bold")
    text.append(
        f"   {standing.steps_done:,} of {count(total, 'step')} done, {standing.under_way:,} under way", ""
    )
    if standing.throttle is not None:
        text.append(f"   throttle {human_bytes(standing.throttle)}/s{' (auto)' if standing.auto else ''}")
    if standing.paused:
        text.append(f"\npaused: {clean(standing.paused)}", style="yellow")
    elif standing.waits:
        text.append(f"\nwaits: {clean(standing.waits)}", style="yellow")
    return text


def _bytes(standing: Standing) -> Text:
    report = standing.report
    text = Text(f"{_bar(report.done_bytes, report.to_do_bytes)} ", style="green")
    text.append(
        f"{human_bytes(report.done_bytes)} of {human_bytes(report.to_do_bytes)}   "
        f"{human_bytes(report.rate)}/s   {until(report.eta)}",
        style="default",
    )
    return text


def _bar(value: int, maximum: int) -> str:
    return bar(value, maximum, _BAR, PRETTY).ljust(_BAR, "·")


def until(eta: Eta | None) -> str:
    """`3 to 5 min left`."""
    if eta is None:
        return "no estimate yet"
    low, high = duration(eta.soonest_s), duration(eta.latest_s)
    return f"{low} left" if low == high else f"{low} to {high} left"


def duration(seconds: float) -> str:
    """As a person would say it."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}" if seconds < 10 * size else f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _brokers(brokers: tuple[BrokerPart, ...]) -> Grid:
    table = Grid(("to broker", LABEL), ("", BAR), ("done", NUMBER), ("of", NUMBER), ("replicas", NUMBER))
    for each in brokers[:_ROWS]:
        table.add_row(
            str(each.broker),
            _bar(each.done_bytes, each.to_do_bytes),
            human_bytes(each.done_bytes),
            human_bytes(each.to_do_bytes),
            str(each.replicas),
        )
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
        table.add_row(
            clean(str(each.partition)),
            "-" if each.leader is None else str(each.leader),
            str(each.broker),
            human_bytes(each.copied_bytes),
            human_bytes(each.size_bytes),
            human_bytes(each.behind_bytes),
            "in sync" if each.in_sync else "",
        )
    if len(copying) > _ROWS:
        table.caption = f"and {len(copying) - _ROWS:,} more"
    return table


def _foot(standing: Standing) -> Text:
    ill = standing.under_replicated or standing.offline
    return Text(
        f"{standing.under_replicated:,} under-replicated, {standing.offline:,} offline, "
        f"requests take {standing.latency_s * 1000:.0f} ms",
        style="red" if ill else "dim",
    )
