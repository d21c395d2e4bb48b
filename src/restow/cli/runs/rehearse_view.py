"""How a rehearsal is drawn: the time first, then what limits it, brokers, log dirs, clients, problems."""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import TYPE_CHECKING

from restow.cli.shared.drawing import clean, ends_of, heading, put
from restow.cli.shared.tables import NAME, NUMBER, Grid
from restow.plan.flow.constants import known_lines
from restow.sizes import count, human_bytes, human_duration, human_rate

if TYPE_CHECKING:
    from rich.console import Console

    from restow.rehearse.answer import FaultRehearsal, LogDirRehearsal, Rehearsal

_ROWS, _FEW_ROWS = 20, 8
LOG_DIR_HEADS = ("broker", "log dir", "before", "at most", "after", "at the end", "allowed")
_BY = {
    "executor": "the executor in virtual time",
    "events": "the executor's schedule in the model",
    "messages": "the executor on a simulated cluster, message by message",
}


def draw(console: Console, told: Rehearsal) -> None:
    """Draw a rehearsal."""
    if told.title:
        put(console, clean(told.title), style="bold")
    put(console, sentence(told), style="bold")
    begins = datetime.fromtimestamp(told.start_ms / 1000).astimezone()
    put(
        console,
        f"throttle {clean(told.throttle)}, begins {begins:%Y-%m-%d %H:%M}; by {_BY[told.by]}",
        style="dim",
    )
    for note in (*known_lines(told.known), *told.notes):
        put(console, note, style="dim")
    _draw_starts(console, told)
    for each in told.limiting:
        put(console, f"  {each.share:4.0%} of the time: {clean(each.what)}")
    _draw_brokers(console, told)
    _draw_log_dirs(console, told)
    _draw_clients(console, told)
    for fault in told.what_if:
        _draw_fault(console, fault)
    for problem in told.problems:
        put(console, f"problem: {clean(problem)}", style="red")
    if told.holds:
        put(console, "nothing speaks against it", style="green")


def _draw_starts(console: Console, told: Rehearsal) -> None:
    for each in told.starts:
        begins = datetime.fromtimestamp(each.start_ms / 1000).astimezone()
        put(
            console,
            f"  start {begins:%a %Y-%m-%d %H:%M}: throttle {clean(each.throttle)}, "
            f"{human_duration(each.seconds)}, impact on clients {human_bytes(each.impact)}",
        )


def sentence(told: Rehearsal) -> str:
    """Return the time in a sentence."""
    copied = f"{count(told.moves, 'partition')}, {human_bytes(told.bytes_to_copy)} to copy"
    if told.seconds.p50 == inf:
        return f"{copied}: it would never end"
    low, middle, high = map(human_duration, (told.seconds.p10, told.seconds.p50, told.seconds.p90))
    return f"{copied}: takes {middle} (P10 {low}, P90 {high})"


def _draw_brokers(console: Console, told: Rehearsal) -> None:
    if not told.brokers:
        return
    heading(console, "Brokers")
    names = (
        "broker",
        "receives",
        "sends",
        "between dirs",
        "most in",
        "most out",
        "clients in",
        "clients out",
    )
    table = Grid(*((name, NUMBER) for name in names))
    for each in ends_of(told.brokers, _ROWS):
        sizes = (each.received_bytes, each.sent_bytes, each.within_bytes)
        clients = (each.clients_in, each.clients_out)
        table.add_row(
            str(each.broker),
            *(human_bytes(size) if size else "-" for size in sizes),
            *(human_rate(rate) if rate else "-" for rate in (each.most_in, each.most_out)),
            *("?" if rate is None else human_rate(rate) for rate in clients),
        )
    console.print(table)


def _draw_log_dirs(console: Console, told: Rehearsal) -> None:
    if not told.log_dirs:
        return
    heading(console, "Log dirs")
    table = Grid(*((name, NUMBER) for name in LOG_DIR_HEADS))
    for each in ends_of(told.log_dirs, _ROWS):
        table.add_row(*map(clean, log_dir_cells(each)))
    console.print(table)


def log_dir_cells(each: LogDirRehearsal) -> tuple[str, ...]:
    """Return the cells of one log dir, under `LOG_DIR_HEADS`."""
    return (
        str(each.broker),
        each.path,
        human_bytes(each.before_bytes),
        human_bytes(each.peak_bytes),
        human_duration(each.peak_s),
        human_bytes(each.after_bytes),
        human_bytes(each.limit_bytes),
    )


def _draw_clients(console: Console, told: Rehearsal) -> None:
    heading(console, "Clients and replicas")
    moved = count(len(told.leader_changes), "leader")
    put(console, f"  {moved} move{'s' if len(told.leader_changes) == 1 else ''}: their clients connect anew")
    put(console, f"  up to {human_bytes(told.read_from_disk_bytes)} are read from disk")
    put(
        console,
        f"  {count(told.under_replicated, 'partition')} under-replicated meanwhile, unless a broker fails",
    )
    if told.impact is not None:
        put(console, f"  impact {human_bytes(told.impact)}: bytes of clients that wait behind copies")
    if told.isr_margin is not None:
        margin = count(told.isr_margin, "in-sync replica")
        put(console, f"  at least {margin} more than min.insync.replicas, in every partition that moves")
    for why in told.pauses:
        put(console, f"  the run pauses: {clean(why)}")
    if told.impact is not None:
        _draw_topics(console, told)
        _draw_hours(console, told)


def _draw_topics(console: Console, told: Rehearsal) -> None:
    if not told.topics:
        return
    heading(console, "Topics whose clients connect anew")
    table = Grid(("topic", NAME), *((name, NUMBER) for name in ("leaders", "written", "read")))
    for each in told.topics[:_FEW_ROWS]:
        rates = (each.written, each.read)
        told_rates = (human_rate(rate) if rate else "-" for rate in rates)
        table.add_row(clean(each.topic), f"{each.leaders_moved:,}", *told_rates)
    console.print(table)
    if len(told.topics) > _FEW_ROWS:
        put(console, f"  and {count(len(told.topics) - _FEW_ROWS, 'topic')} more", style="dim")


def _draw_hours(console: Console, told: Rehearsal) -> None:
    """Draw the busiest hours of brokers: what clients do there, and what copies add."""
    rows = [
        (each.broker, hour) for each in told.brokers for hour in each.hours if hour.clients_in is not None
    ]
    rows.sort(
        key=lambda row: (
            -max(row[1].copied_in + (row[1].clients_in or 0), row[1].copied_out + (row[1].clients_out or 0))
        )
    )
    if not rows:
        return
    heading(console, "Busiest hours")
    names = ("broker", "from", "clients in", "copies add", "clients out", "copies add ")
    table = Grid(*((name, NUMBER) for name in names))
    for broker, hour in rows[:_FEW_ROWS]:
        begins = datetime.fromtimestamp(hour.begins_ms / 1000).astimezone()
        rates = (hour.clients_in, hour.copied_in, hour.clients_out, hour.copied_out)
        table.add_row(
            str(broker), f"{begins:%a %H:%M}", *(human_rate(rate) if rate else "-" for rate in rates)
        )
    console.print(table)


def _draw_fault(console: Console, fault: FaultRehearsal) -> None:
    heading(console, f"If {clean(fault.faults)}")
    put(
        console,
        f"  {clean(fault.ending)}" + ("" if fault.seconds == inf else f", {human_duration(fault.seconds)}"),
    )
    for why in fault.pauses:
        put(console, f"  the run pauses: {clean(why)}")
    if fault.unfinished:
        put(
            console,
            f"  {count(fault.unfinished, 'step')} would not end: cancel them, or start the broker again",
        )
    put(console, f"  up to {count(fault.under_replicated, 'partition')} under-replicated")
    put(console, f"  {count(fault.leaders_moved, 'leader')} moved")
    if fault.isr_margin is not None and fault.isr_margin < 0:
        put(
            console,
            "  some partitions fall below min.insync.replicas: producers with acks=all fail",
            style="red",
        )
