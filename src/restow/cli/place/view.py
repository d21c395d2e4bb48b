"""The picture of a placement: a row per partition, a column per broker, and the balance below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.cli.shared.drawing import bar, clean, cut, glyphs, heading, middle_out, put, put_picture
from restow.cli.shared.tables import BAR, NAME, NUMBER, Grid
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console
    from rich.text import Text

    from restow.cli.place.command import PlaceReport
    from restow.cli.shared.drawing import Glyphs
    from restow.model import Broker

_RACK_GAP = 2


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of the picture: as many brokers as fit, rack by rack."""

    racks: tuple[tuple[str, tuple[int, ...]], ...]
    cell: int
    """Width of a broker's column. In a column too narrow for its id the digits stand one below another."""
    name: int
    """Width for the racks' names."""
    left_out: int = 0

    def group_width(self, rack: str, ids: tuple[int, ...]) -> int:
        return max(len(ids) * self.cell, min(len(rack), self.name))

    def width(self) -> int:
        return sum(self.group_width(rack, ids) + _RACK_GAP for rack, ids in self.racks) - _RACK_GAP

    def id_lines(self) -> list[str]:
        """Return the header lines: the ids side by side, or digit below digit."""
        digits = max((len(str(id_)) for _, ids in self.racks for id_ in ids), default=1)
        lines = []
        for line in range(1 if self.cell > digits else digits):
            groups = [
                "".join(
                    f"{id_:>{self.cell}}" if self.cell > digits else f"{id_:>{digits}}"[line].rjust(self.cell)
                    for id_ in ids
                ).ljust(self.group_width(rack, ids))
                for rack, ids in self.racks
            ]
            lines.append((" " * _RACK_GAP).join(groups))
        return lines


def draw_placement(console: Console, report: PlaceReport, rows: int) -> None:
    """Draw the whole report."""
    marks = glyphs(console)
    put(console, _title(report, marks), style="bold")
    if report.seed is not None:
        put(console, f"random start; --seed {report.seed} repeats it", style="dim")
    _draw_matrix(console, report, rows, marks)
    _draw_loads(console, report, rows, marks)
    _draw_verdict(console, report)


def _title(report: PlaceReport, marks: Glyphs) -> str:
    counts = {len(replicas) for replicas in report.assignment.values()}
    replicas = count(max(counts), "replica")
    if len(counts) > 1:
        replicas = f"{min(counts)} to {replicas}"
    racks = {broker.rack for broker in report.brokers if broker.rack is not None}
    name = f"{clean(report.topic)}: " if report.topic else ""
    return (
        f"{name}{count(len(report.assignment), 'partition')} {marks.times} {replicas} "
        f"on {count(len(report.brokers), 'broker')}" + (f" in {count(len(racks), 'rack')}" if racks else "")
    )


def _by_rack(brokers: Sequence[Broker]) -> list[tuple[str, list[int]]]:
    """Sort racks by name and the brokers in each by id; brokers without a rack come last."""
    nameless = "no rack" if any(broker.rack is not None for broker in brokers) else ""
    found: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda b: (b.rack is None, b.rack or "", b.id)):
        found.setdefault(nameless if broker.rack is None else clean(broker.rack), []).append(broker.id)
    return list(found.items())


def _fit(brokers: Sequence[Broker], width: int) -> _Columns:
    """Fit the brokers into this width; if there is too little room, keep the first brokers of each rack."""
    groups = [(rack, tuple(ids)) for rack, ids in _by_rack(brokers)]
    wide = max(len(str(broker.id)) for broker in brokers) + 1
    for cell, name in ((wide, 12), (wide, 6), (2, 12), (2, 6), (1, 6), (1, 3)):
        columns = _Columns(tuple(groups), cell, name)
        if columns.width() <= width:
            return columns
    each = max(len(ids) for _, ids in groups)
    while columns.width() > width and (each > 1 or len(groups) > 1):
        if each > 1:
            each -= 1
        else:
            groups.pop()
        kept = tuple((rack, ids[:each]) for rack, ids in groups)
        columns = _Columns(kept, 1, 3, len(brokers) - sum(len(ids) for _, ids in kept))
    return columns


def _draw_matrix(console: Console, report: PlaceReport, rows: int, marks: Glyphs) -> None:
    partitions = list(report.assignment)
    head, tail = middle_out(len(partitions), rows)
    shown = [partitions[index] for index in (*head, *tail)]
    followers = {p: " ".join(map(str, report.assignment[p][1:])) for p in shown}
    width = min(max(len("followers"), *map(len, followers.values())), max(12, console.width // 3))
    margin = len("partition") + 2 + len("leader") + 2 + width + 3
    columns = _fit(report.brokers, console.width - margin)
    put(console)
    _draw_header(console, columns, margin, width, marks)
    for index, partition in enumerate(shown):
        if tail and index == len(head):
            left_out = count(len(partitions) - len(shown), "partition")
            put(console, f"{marks.dots:>9}  {left_out} left out (--rows 0 shows all)", style="dim")
        put_picture(console, _row(report, partition, followers[partition], width, columns, marks))
    if columns.left_out:
        put(
            console,
            f"{count(columns.left_out, 'broker')} not drawn; a wider terminal shows more, all count below",
            style="dim",
        )
    legend = f"{marks.leader} leader   {marks.follower} follower" + (
        "   + new partition" if report.new else ""
    )
    put(console)
    put(console, legend, style="dim")


def _draw_header(console: Console, columns: _Columns, margin: int, width: int, marks: Glyphs) -> None:
    from rich.text import Text

    gap = " " * _RACK_GAP
    if any(rack for rack, _ in columns.racks):
        names = [
            cut(rack, columns.group_width(rack, ids), marks).center(columns.group_width(rack, ids))
            for rack, ids in columns.racks
        ]
        put_picture(console, " " * margin + gap.join(names).rstrip(), style="bold cyan")
    *above, last = columns.id_lines()
    for line in above:
        put_picture(console, " " * margin + line.rstrip(), style="bold")
    text = Text(f"partition  leader  {'followers':<{width}}   ", style="dim")
    text.append(last.rstrip(), style="not dim bold")
    put_picture(console, text)


def _row(
    report: PlaceReport, partition: int, followers: str, width: int, columns: _Columns, marks: Glyphs
) -> Text:
    from rich.text import Text

    replicas = report.assignment[partition]
    is_new = partition in report.new
    line = Text()
    line.append(f"{'+' if is_new else ''}{partition}".rjust(9), style="bold yellow" if is_new else "")
    line.append(f"  {replicas[0]:>6}", style="bold")
    line.append(f"  {cut(followers, width, marks):<{width}}   ")
    for index, (rack, ids) in enumerate(columns.racks):
        line.append(" " * _RACK_GAP if index else "")
        for id_ in ids:
            line.append(" " * (columns.cell - 1))
            if id_ == replicas[0]:
                line.append(marks.leader, style="bold green")
            elif id_ in replicas:
                line.append(marks.follower, style="green")
            else:
                line.append(marks.nothing, style="dim")
        line.append(" " * (columns.group_width(rack, ids) - len(ids) * columns.cell))
    line.rstrip()
    return line


def _draw_loads(console: Console, report: PlaceReport, rows: int, marks: Glyphs) -> None:
    from rich.text import Text

    loads = sorted(report.evaluation.loads, key=lambda load: (load.rack is None, load.rack or "", load.id))
    most_replicas = max(load.replicas for load in loads)
    most_leaders = max(load.leaders for load in loads)
    room = max(8, min(24, (console.width - 44) // 2))
    heading(console, "Per broker")
    table = Grid(
        ("broker", NUMBER), ("rack", NAME), ("replicas", NUMBER), ("", BAR), ("leaders", NUMBER), ("", BAR)
    )
    head, tail = middle_out(len(loads), rows)
    for index in (*head, *tail):
        load = loads[index]
        table.add_row(
            str(load.id),
            load.rack or "-",
            f"{load.replicas:,}",
            Text(bar(load.replicas, most_replicas, room, marks), style="cyan"),
            f"{load.leaders:,}",
            Text(bar(load.leaders, most_leaders, room, marks), style="green"),
        )
    if tail:
        left_out = count(len(loads) - len(head) - len(tail), "broker")
        table.caption = f"{left_out} after broker {loads[head[-1]].id} left out (--rows 0 shows all)"
    console.print(table)


def _draw_verdict(console: Console, report: PlaceReport) -> None:
    verdict = report.evaluation
    heading(console, "Verdict")
    for label, counts, ratio in (
        ("replicas", verdict.replicas.values(), verdict.replicas_max_over_mean),
        ("leaders", verdict.leaders.values(), verdict.leaders_max_over_mean),
    ):
        put(console, f"  {label:<9} {min(counts)} to {max(counts)} per broker, max/mean {ratio:.2f}")
    spread = verdict.rack_spread
    if spread is None:
        known = any(broker.rack is not None for broker in report.brokers)
        put(
            console,
            f"  racks     {'not known for every broker' if known else 'none given'}: spread not judged",
        )
        return
    span = f"{spread.fewest}" if spread.fewest == spread.most else f"{spread.fewest} to {spread.most}"
    put(console, f"  racks     every partition is in {span} of {count(spread.racks, 'rack')}")
    if spread.partitions_short:
        short = count(spread.partitions_short, "partition")
        put(console, f"            {short} could be in more racks", style="yellow")
