"""The picture of a group's assignment: each member's partitions, the changes, and the balance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.cli.shared.drawing import bar, clean, cut, glyphs, heading, middle_out, put, put_picture, ranges
from restow.cli.shared.tables import BAR, NAME, NUMBER, WORDS, Grid
from restow.sizes import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console
    from rich.text import Text

    from restow.cli.groups.assign import GroupReport
    from restow.cli.shared.drawing import Glyphs

_MAX_BLOCKS = 4
_MAX_NAME = 24
_MAX_RUNS = 12


@dataclass(frozen=True, slots=True)
class _Slice:
    """Consecutive partitions of one topic, drawn as one group of columns."""

    topic: str
    partitions: range
    width: int


def draw_group(console: Console, report: GroupReport, rows: int) -> None:
    """Draw the whole report."""
    marks = glyphs(console)
    put(console, _title(report, marks), style="bold")
    _draw_members(console, report, rows, marks)
    _draw_strips(console, report, rows, marks)
    _draw_comparison(console, report)


def _title(report: GroupReport, marks: Glyphs) -> str:
    topics = count(len(report.partitions), "topic")
    partitions = count(sum(report.partitions.values()), "partition")
    return f"{report.assignor}: {partitions} of {topics} {marks.times} {count(len(report.after), 'member')}"


def _draw_members(console: Console, report: GroupReport, rows: int, marks: Glyphs) -> None:
    sizes = {member: len(owned) for member, owned in report.after.items()}
    largest = max(sizes.values(), default=0)
    table = Grid(("member", NAME), ("count", NUMBER), ("", BAR), ("partitions", WORDS))
    names = list(report.after)
    head, tail = middle_out(len(names), rows)
    for index in (*head, *tail):
        if tail and index == tail[0]:
            table.add_row(marks.dots, "", "", f"{count(len(names) - rows, 'member')} left out (--rows 0)")
        name = names[index]
        table.add_row(
            cut(clean(name), _name_width(console), marks),
            str(sizes[name]),
            bar(sizes[name], largest, 8, marks),
            _per_topic(report.by_topic(name), _MAX_RUNS if rows else 0),
        )
    put(console)
    console.print(table)


def _name_width(console: Console) -> int:
    return max(6, min(_MAX_NAME, console.width // 3))


def _per_topic(by_topic: Mapping[str, Sequence[int]], most: int) -> Text:
    from rich.text import Text

    lists = {clean(topic): ranges(partitions, most) for topic, partitions in by_topic.items()}
    long = max(map(len, lists.values()), default=0) > 24
    text = Text()
    for topic, listed in lists.items():
        text.append(("\n" if long else "   ") if text else "")
        text.append(f"{topic} ", style="dim")
        text.append(listed)
    return text


def _draw_strips(console: Console, report: GroupReport, rows: int, marks: Glyphs) -> None:
    """Draw one row per member, one mark per partition."""
    names = list(report.after)
    if not names or not sum(report.partitions.values()):
        return
    margin = min(_name_width(console), max(len(clean(name)) for name in names)) + 2
    blocks = _blocks(report.partitions, max(20, console.width - margin))
    head, tail = middle_out(len(names), rows)
    for block in blocks[:_MAX_BLOCKS]:
        put(console)
        put_picture(
            console,
            " " * margin + "  ".join(_topic_label(part, marks) for part in block).rstrip(),
            style="bold cyan",
        )
        put_picture(console, " " * margin + "  ".join(_ruler(part) for part in block).rstrip(), style="dim")
        for index in (*head, *tail):
            if tail and index == tail[0]:
                put(console, marks.dots, style="dim")
            put_picture(console, _strip(report, names[index], block, margin, marks))
    if len(blocks) > _MAX_BLOCKS:
        drawn = sum(len(part.partitions) for block in blocks[:_MAX_BLOCKS] for part in block)
        left_out = sum(report.partitions.values()) - drawn
        put(
            console,
            f"{marks.dots} {count(left_out, 'partition')} not drawn (a wider terminal shows more)",
            style="dim",
        )
    put(console)
    put(console, _legend(report, marks), style="dim")


def _legend(report: GroupReport, marks: Glyphs) -> str:
    if not report.had_before:
        return f"{marks.leader} reads   {marks.nothing} does not"
    return (
        f"{marks.leader} kept   {marks.gained} gained   {marks.follower} given up   {marks.nothing} neither"
    )


def _blocks(partitions: Mapping[str, int], width: int) -> list[list[_Slice]]:
    """Arrange topics side by side in blocks of this width; a wider topic continues in the next block."""
    blocks: list[list[_Slice]] = [[]]
    room = width
    for topic, size in partitions.items():
        start = 0
        while start < size:
            label = min(len(clean(topic)), 12)
            if room < max(label, min(size - start, 10)) and blocks[-1]:
                blocks.append([])
                room = width
            stop = min(size, start + room)
            part = _Slice(topic, range(start, stop), max(label, stop - start))
            blocks[-1].append(part)
            room -= part.width + 2
            start = stop
    return [block for block in blocks if block]


def _topic_label(part: _Slice, marks: Glyphs) -> str:
    return cut(clean(part.topic), part.width, marks).ljust(part.width)


def _ruler(part: _Slice) -> str:
    """Return the partition numbers above the marks: the first, then every tenth or fifth that fits."""
    line = ""
    for partition in part.partitions:
        at = partition - part.partitions[0]
        due = at == 0 or partition % (5 if len(part.partitions) <= 20 else 10) == 0
        if due and at >= len(line) + (1 if line else 0) and at + len(str(partition)) <= part.width:
            line = line.ljust(at) + str(partition)
    return line.ljust(part.width)


def _strip(report: GroupReport, member: str, block: list[_Slice], margin: int, marks: Glyphs) -> Text:
    from rich.text import Text

    now, before = report.now_of(member), report.before_of(member)
    line = Text(cut(clean(member), margin - 2, marks).ljust(margin))
    for index, part in enumerate(block):
        line.append("  " if index else "")
        for partition in part.partitions:
            where = (part.topic, partition)
            if where in now:
                kept = not report.had_before or where in before
                line.append(marks.leader if kept else marks.gained, style="green" if kept else "bold yellow")
            elif where in before:
                line.append(marks.follower, style="red")
            else:
                line.append(marks.nothing, style="dim")
        line.append(" " * (part.width - len(part.partitions)))
    line.rstrip()
    return line


def _draw_comparison(console: Console, report: GroupReport) -> None:
    comparison = report.comparison
    heading(console, "Balance and movement")
    sizes = [len(owned) for owned in report.after.values()]
    low, high = min(sizes, default=0), max(sizes, default=0)
    _line(
        console, "partitions", f"{low} to {high} per member", "as even as can be" if high - low <= 1 else ""
    )
    score = f"{comparison.balance_score}"
    if report.had_before:
        score = f"{comparison.balance_score_before} before, {comparison.balance_score} now"
    _line(console, "balance score", score, "sum of differences over all pairs")
    if report.had_before:
        _line(console, "moved", str(comparison.moved), "another member read them before")
        _line(console, "revoked", str(comparison.revoked), "taken from members that are here")
    for topic, partitions in report.unassigned.items():
        waiting = report.cooperative and topic in report.subscribed
        label, note = ("waiting", "free for the next round") if waiting else ("unread", "nobody subscribes")
        _line(console, label, f"{clean(topic)} {ranges(partitions, _MAX_RUNS)}", note)


def _line(console: Console, label: str, value: str, note: str) -> None:
    from rich.text import Text

    text = Text(f"  {label:<15}{value}")
    if note:
        text.pad_right(max(0, 42 - len(text)))
        text.append(f"  {note}", style="dim")
    put(console, text)
