"""A rehearsal as one HTML file: the time, rates and disks over time, the steps."""

from __future__ import annotations

from datetime import datetime
from math import inf
from typing import TYPE_CHECKING

from restow.cli.runs.rehearse_view import LOG_DIR_HEADS, log_dir_cells, sentence
from restow.html.page import ReportPage, Section, Tile, page, paragraph, table
from restow.html.plots import Line, Span, lines, spans
from restow.sizes import human_bytes, human_duration, human_rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.model import Step
    from restow.rehearse.answer import Rehearsal

_LINES, _SPANS = 8, 60


def page_of(told: Rehearsal) -> str:
    """Return the page."""
    return page(
        ReportPage(
            title=f"Rehearsal: {told.title or 'plan'}",
            lead=f"{sentence(told)}. Throttle {told.throttle}. {' '.join(f'{n}.' for n in told.notes)}",
            tiles=tuple(_tiles(told)),
            sections=tuple(_sections(told)),
            footer=f"cluster {told.cluster_id}, digest {told.digest}",
        )
    )


def _tiles(told: Rehearsal) -> Iterator[Tile]:
    for name, seconds in (("P10", told.seconds.p10), ("P50", told.seconds.p50), ("P90", told.seconds.p90)):
        yield Tile(value="never" if seconds == inf else human_duration(seconds), name=name)
    yield Tile(value=human_bytes(told.bytes_to_copy), name="to copy")
    yield Tile(value=f"{len(told.leader_changes):,}", name="leaders move")
    if told.problems:
        yield Tile(value=f"{len(told.problems)}", name="problems", kind="bad")


def _sections(told: Rehearsal) -> Iterator[Section]:
    if told.problems:
        yield Section(title="Problems", parts=tuple(paragraph(each, "bad") for each in told.problems))
    limits = [(each.what, f"{each.share:.0%}") for each in told.limiting]
    yield Section(title="What limits it", parts=(table(("", "of the time"), limits),))
    yield Section(title="Bytes copied", parts=(_progress(told),))
    yield Section(title="Brokers", parts=(_rates(told), _brokers(told)))
    yield Section(title="Log dirs", parts=(_disks(told), _log_dirs(told)))
    if told.topics:
        yield Section(title="Topics whose clients connect anew", parts=(_topics(told),))
    if told.impact is not None:
        note = "Bytes per second on average: what clients do in that hour, and what copies add."
        yield Section(title="Brokers by hour", note=note, parts=(_hours(told),))
    steps = [
        (
            each.step.partition,
            ", ".join(map(str, each.step.before)),
            ", ".join(map(str, each.step.after)),
            f"{each.begun_s:,.1f} s",
            "never" if each.ended_s == inf else f"{each.ended_s:,.1f} s",
        )
        for each in told.steps
    ]
    listed = table(("partition", "before", "after", "begins", "ends"), steps)
    first = f"The first {_SPANS} of {len(told.steps):,} are drawn." if len(told.steps) > _SPANS else ""
    yield Section(title="Steps", note=first, parts=(_timeline(told), listed))


def _timeline(told: Rehearsal) -> str:
    rows = [
        Span(
            name=f"{each.step.partition} → {_target(each.step)}",
            begin_s=each.begun_s,
            end_s=None if each.ended_s == inf else each.ended_s,
            note=human_bytes(each.step.size_bytes),
        )
        for each in told.steps[:_SPANS]
    ]
    return spans(rows, label="steps over time") if rows else ""


def _target(step: Step) -> str:
    """Return what a step changes: brokers that receive a replica, the order of replicas, or log dirs."""
    if step.adding:
        return ", ".join(map(str, step.adding))
    return "log dir" if step.before == step.after else "order"


def _at(told: Rehearsal, seconds: float) -> float:
    return told.start_ms / 1000 + seconds


def _progress(told: Rehearsal) -> str:
    curves = {"received by all brokers": told.progress}
    curves |= {f"if {each.faults}": each.progress for each in told.what_if}
    drawn = [
        Line(name=name, points=tuple((_at(told, at_s), value) for at_s, value in curve))
        for name, curve in curves.items()
    ]
    return lines(drawn, label="bytes copied over time")


def _rates(told: Rehearsal) -> str:
    busiest = sorted(told.brokers, key=lambda each: -max(each.received_bytes, each.sent_bytes))[:_LINES]
    drawn = [
        Line(
            name=f"broker {each.broker}",
            points=tuple((_at(told, at_s), into + out) for at_s, into, out in each.rates),
        )
        for each in busiest
    ]
    return lines(drawn, unit="B/s", label="bytes per second in and out of the busiest brokers")


def _disks(told: Rehearsal) -> str:
    fullest = sorted(told.log_dirs, key=lambda each: -(each.peak_bytes - each.before_bytes))[:_LINES]
    drawn = [
        Line(
            name=f"broker {each.broker} {each.path}",
            points=tuple((_at(told, at_s), used) for at_s, used in each.used),
        )
        for each in fullest
    ]
    return lines(drawn, label="bytes in log dirs over time")


def _topics(told: Rehearsal) -> str:
    rows = [
        (each.topic, f"{each.leaders_moved:,}", _rate(each.written), _rate(each.read)) for each in told.topics
    ]
    return table(("topic", "leaders", "written", "read"), rows)


def _hours(told: Rehearsal) -> str:
    rows = [
        (
            str(each.broker),
            f"{datetime.fromtimestamp(hour.begins_ms / 1000).astimezone():%a %Y-%m-%d %H:%M}",
            *map(_rate, (hour.clients_in, hour.copied_in, hour.clients_out, hour.copied_out)),
        )
        for each in told.brokers
        for hour in each.hours
    ]
    return table(("broker", "from", "clients in", "copies in", "clients out", "copies out"), rows, left=2)


def _rate(rate: float | None) -> str:
    return "?" if rate is None else human_rate(rate)


def _brokers(told: Rehearsal) -> str:
    return table(
        ("broker", "receives", "sends", "between its log dirs", "most in", "most out"),
        [
            (
                str(each.broker),
                *map(human_bytes, (each.received_bytes, each.sent_bytes, each.within_bytes)),
                *map(human_rate, (each.most_in, each.most_out)),
            )
            for each in told.brokers
        ],
    )


def _log_dirs(told: Rehearsal) -> str:
    return table(LOG_DIR_HEADS, map(log_dir_cells, told.log_dirs), left=2)
