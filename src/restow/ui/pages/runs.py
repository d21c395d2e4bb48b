"""All runs of the journals, and one run: how far it is, what it does, what happened."""

from __future__ import annotations

from html import escape
from math import inf
from typing import TYPE_CHECKING

from restow.html.page import Markup, Section, Tile, paragraph, section, table, tiles
from restow.html.plots import Line, lines, meter
from restow.sizes import count, human_bytes, human_duration, human_rate
from restow.ui.frame import Shown, address, at, live, pager, run_address, run_link
from restow.ui.lists import paged
from restow.ui.pages.cluster import broker_link, ids, partition_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.execute.progress.status import RunStatus
    from restow.model import Move
    from restow.ui.predictions import RehearsedTime
    from restow.ui.run_books import RunBook, RunBooks

_ROWS = 100
_EVENTS = 200
_COPIES = 30
RUN_HEADS = ("run", "plan", "began", "took", "outcome", "moves", "arrived", "to copy", "by")


def history_page(books: RunBooks, number: int) -> Shown:
    """Return the page of all runs."""
    parts = history_parts(books, number)
    return Shown(
        title="Runs",
        body="".join(live(name, html) for name, html in parts.items()),
        feed=address("/events", page="runs", number=number),
    )


def history_parts(books: RunBooks, number: int) -> dict[str, str]:
    """Return its live parts."""
    if books.wrong:
        return {"history": section(Section(title="Journals", parts=(paragraph(books.wrong, "bad"),)))}
    found = paged(books.all(), number, _ROWS)
    if not found.total:
        note = f"There is no run in {books.folder} yet."
        return {"history": section(Section(title="Journals", parts=(paragraph(note),)))}
    rows = [_row(books, each) for each in found.rows]
    turn = pager("/runs", found.number, found.pages)
    return {"history": f"<section>{table(RUN_HEADS, rows, left=2, caption='runs')}{turn}</section>"}


def _row(books: RunBooks, book: RunBook) -> tuple[object, ...]:
    if book.wrong:
        return (run_link(book.name), book.wrong, *["–"] * (len(RUN_HEADS) - 2))
    return (
        run_link(book.name),
        _title(book),
        at(book.began_ms),
        "–" if book.ended_ms is None else human_duration((book.ended_ms - book.began_ms) / 1000),
        Markup(f"<span class='{_KINDS.get(outcome_of(books, book), '')}'>{outcome_of(books, book)}</span>"),
        f"{book.moves:,}",
        f"{book.arrived:,}",
        human_bytes(0 if book.plan is None else book.plan.bytes_to_copy),
        book.who,
    )


def outcome_of(books: RunBooks, book: RunBook) -> str:
    """Return how a run ended, or what it is doing."""
    if books.is_active(book):
        return "paused" if book.status is not None and book.status.paused else "under way"
    return book.outcome if book.outcome in _ENDINGS else "killed" if book.outcome is None else "ended"


_ENDINGS = ("done", "done in part", "cancelled", "left running", "stuck", "out of reach", "failed")
_KINDS = {
    "killed": "state-bad",
    "failed": "state-bad",
    "stuck": "state-bad",
    "out of reach": "state-bad",
    "done in part": "state-warn",
    "left running": "state-warn",
    "paused": "state-warn",
}


def _title(book: RunBook) -> str:
    if book.undo_of:
        return f"undo of {book.undo_of}"
    return (book.plan.title if book.plan is not None else "") or "plan"


def run_page(
    books: RunBooks, book: RunBook, number: int, actions: str = "", predicted: RehearsedTime | None = None
) -> Shown:
    """Return one run's page. `actions` are the forms of an operator."""
    parts = run_parts(books, book, number, predicted)
    body = live("run", parts["run"]) + actions
    body += "".join(live(name, html) for name, html in parts.items() if name != "run")
    return Shown(
        title=f"Run {book.name}",
        body=body,
        feed=address("/events", page="run", name=book.name, number=number),
    )


def run_parts(
    books: RunBooks, book: RunBook, number: int, predicted: RehearsedTime | None = None
) -> dict[str, str]:
    """Return its live parts."""
    if book.wrong:
        return {"run": section(Section(title="The journal", parts=(paragraph(book.wrong, "bad"),)))}
    return {
        "run": _mark(books, book)
        + tiles(_tiles(books, book, predicted))
        + _progress(books, book)
        + _said(books, book),
        "flows": _flows(books, book),
        "timeline": _timeline(book, predicted),
        "moves": _moves(book, number),
        "events": _events(book),
    }


def _mark(books: RunBooks, book: RunBook) -> str:
    """Return what the script shows and hides forms by."""
    return f"<span hidden data-run='{'active' if books.is_active(book) else 'ended'}'></span>"


def _tiles(books: RunBooks, book: RunBook, predicted: RehearsedTime | None) -> Iterator[Tile]:
    outcome = outcome_of(books, book)
    kind = "good" if outcome == "done" else "bad" if _KINDS.get(outcome) == "state-bad" else ""
    yield Tile(value=outcome, name="now" if books.is_active(book) else "outcome", kind=kind)
    yield Tile(value=f"{book.arrived:,} of {book.moves:,}", name="moves arrived")
    status = book.status
    if status is not None and books.is_active(book):
        report = status.report
        yield Tile(value=human_rate(report.rate), name="copied in all")
        left = "paused" if status.paused else "?" if report.eta_s is None else human_duration(report.eta_s)
        yield Tile(value=left, name="left")
        yield Tile(value=_throttle(status), name="throttle per broker")
        bad = status.under_replicated or status.offline
        yield Tile(
            value=f"{status.under_replicated:,} / {status.offline:,}",
            name="under-replicated / offline",
            kind="bad" if bad else "",
        )
    elif book.ended_ms is not None:
        yield Tile(value=human_duration((book.ended_ms - book.began_ms) / 1000), name="took")
    if predicted is not None and predicted.p50_s is not None:
        ends = (predicted.p10_s, predicted.p90_s)
        low, high = (human_duration(inf if each is None else each) for each in ends)
        words = f"predicted at {predicted.throttle}: {low} to {high}"
        yield Tile(value=human_duration(predicted.p50_s), name=words)


def _throttle(status: RunStatus) -> str:
    if status.throttle is None:
        return "none"
    return human_rate(status.throttle) + (" (auto)" if status.auto else "")


def _progress(books: RunBooks, book: RunBook) -> str:
    total = 0 if book.plan is None else book.plan.bytes_to_copy
    done = book.arrived_bytes[-1][1] if book.arrived_bytes else 0
    if book.status is not None and books.is_active(book):
        done, total = book.status.report.done_bytes, book.status.report.to_do_bytes
    words = f"{human_bytes(done)} of {human_bytes(total)}"
    shown = meter(done, total, words, "fine")
    return f"<section><h2>Bytes copied</h2><div class='progress'>{shown}</div>{paragraph(words)}</section>"


def _said(books: RunBooks, book: RunBook) -> str:
    status = book.status if books.is_active(book) else None
    parts = []
    if status is not None and status.paused:
        parts.append(paragraph(f"Paused: {status.paused}", "bad"))
    elif status is not None and status.waits:
        parts.append(paragraph(f"Waits: {status.waits}"))
    if status is not None:
        parts += [
            paragraph(f"Stands still: {each}: {each.advice}", "bad") for each in status.report.still[:20]
        ]
    if book.reason:
        parts.append(paragraph(book.reason, "bad"))
    if book.outcome is None and not books.is_active(book):
        parts.append(
            paragraph(
                "No process on this machine carries it out. Resume it, cancel it, or undo it; until then its "
                "throttles stay on.",
                "bad",
            )
        )
    facts = [("plan", _title(book)), ("digest", book.digest), ("by", book.who)]
    rows = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>" for name, value in facts)
    return "".join(parts) + f"<section><h2>Plan</h2><dl class='facts'>{rows}</dl></section>"


def _flows(books: RunBooks, book: RunBook) -> str:
    if book.status is None or not books.is_active(book):
        return ""
    report = book.status.report
    brokers = [
        (
            broker_link(each.broker),
            meter(each.done_bytes, each.to_do_bytes, "received"),
            f"{human_bytes(each.done_bytes)} of {human_bytes(each.to_do_bytes)}",
            meter(each.sent_bytes, each.to_send_bytes, "sent"),
            f"{human_bytes(each.sent_bytes)} of {human_bytes(each.to_send_bytes)}",
            each.replicas,
        )
        for each in sorted(report.brokers, key=lambda e: e.done_bytes - e.to_do_bytes)[:_COPIES]
    ]
    slowest = sorted(report.copying, key=lambda each: each.copied_bytes - each.size_bytes)[:_COPIES]
    copies = [
        (
            partition_link(each.partition),
            "–" if each.leader is None else each.leader,
            each.broker,
            meter(each.copied_bytes, each.size_bytes, "copied"),
            f"{human_bytes(each.copied_bytes if each.answered else None)} of {human_bytes(each.size_bytes)}",
            "in sync" if each.in_sync else "",
        )
        for each in slowest
    ]
    heads = ("broker", "receives", "received", "sends", "sent", "moving")
    parts = [table(heads, brokers, caption="brokers")] if brokers else []
    if copies:
        parts.append("<h3>Replicas under way</h3>")
        names = ("partition", "from", "to", "copied", "bytes", "")
        parts.append(table(names, copies, caption="replicas under way"))
        more = len(report.copying) - len(copies)
        parts.append(paragraph(f"and {more:,} more") if more > 0 else "")
    return section(Section(title="Flows", parts=tuple(parts))) if parts else ""


def _timeline(book: RunBook, predicted: RehearsedTime | None) -> str:
    """Return the bytes of the moves that had arrived, over time, beside what was predicted."""
    if not book.arrived_bytes and predicted is None:
        return ""
    points = _thinned([(book.began_ms, 0), *book.arrived_bytes])
    drawn = [_line("moves that have arrived", points, 0)]
    if predicted is not None:
        ahead = [(round(1000 * at_s), round(size)) for at_s, size in predicted.arrived]
        drawn.append(_line("as predicted", _thinned(ahead), book.began_ms))
    picture = lines(drawn, label="bytes of the moves that had arrived, over time")
    return section(Section(title="Over time", parts=(picture,)))


def _line(name: str, points: Sequence[tuple[int, int]], from_ms: int) -> Line:
    return Line(name=name, points=tuple(((from_ms + at_ms) / 1000, float(size)) for at_ms, size in points))


def _thinned(points: Sequence[tuple[int, int]], most: int = 400) -> Sequence[tuple[int, int]]:
    """Return at most so many points, with the first and the last."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(number * step)] for number in range(most)]


def _moves(book: RunBook, number: int) -> str:
    if book.plan is None:
        return ""
    found = paged(book.plan.moves_in_order, number, _ROWS)
    rows = [_move_row(book, each) for each in found.rows]
    heads = ("partition", "from", "to", "to copy", "begun", "arrived", "why")
    turn = pager(run_address(book.name), found.number, found.pages)
    shown = table(heads, rows, left=7, caption="moves")
    return section(Section(title=f"Moves: {found.total:,}", parts=(shown, turn)))


def _move_row(book: RunBook, move: Move) -> tuple[object, ...]:
    times = book.times.get(move.partition)
    return (
        partition_link(move.partition),
        ids(move.before),
        ids(move.after),
        human_bytes(move.bytes_to_copy),
        "–" if times is None else at(times.begun_ms),
        "–" if times is None else f"left out: {times.dropped}" if times.dropped else at(times.ended_ms),
        move.reason,
    )


def _events(book: RunBook) -> str:
    latest = book.events[-_EVENTS:][::-1]
    rows = [(at(each.at_ms), each.text) for each in latest]
    note = f"The latest {len(latest):,} of {count(len(book.events), 'event')}."
    shown = table(("when", "what"), rows, left=2, caption="events", most=_EVENTS)
    scrolls = f"<div class='scroll' tabindex='0' role='region' aria-label='What happened'>{shown}</div>"
    return section(
        Section(title="What happened", note=note if len(latest) < len(book.events) else "", parts=(scrolls,))
    )
