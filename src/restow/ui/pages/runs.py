"""All runs of the journals, and one run: how far it is, what it does, what happened."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from restow.html.page import Markup, ReportPage, Section, Tile, link, page, paragraph, table, tiles, titled
from restow.html.plots import Line, lines, meter
from restow.sizes import count, human_bytes, human_duration, human_rate
from restow.ui.addresses import run_address
from restow.ui.bars import progress, span
from restow.ui.frame import Shown, address, at, live, live_parts, pager, run_link
from restow.ui.lists import paged, thinned
from restow.ui.pages.links import broker_link, ids, partition_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.execute.progress.status import RunStatus
    from restow.ui.moves import ShownMove
    from restow.ui.run_books import PartitionTimes, RunBook, RunBooks

_ROWS = 100
_EVENTS = 200
_COPIES = 30
_POINTS = 400
RUN_HEADS = ("run", "plan", "outcome", "by", "began", "took", "predicted", "off by", "moves", "to copy")
_SHORT_MS = 20 * 3600 * 1000
"""The moments of a run that is not longer are told without their date."""


def history_page(books: RunBooks, number: int) -> Shown:
    """Return the page of all runs."""
    parts = history_parts(books, number)
    return Shown(
        title="Runs",
        body=live_parts(parts),
        feed=address("/events", page="runs", number=number),
    )


def history_parts(books: RunBooks, number: int) -> dict[str, str]:
    """Return its live parts."""
    if books.wrong:
        return {"history": titled("Journals", paragraph(books.wrong, "bad"))}
    found = paged(books.all(), number, _ROWS)
    if not found.total:
        note = f"There is no run in {books.folder} yet."
        return {"history": titled("Journals", paragraph(note))}
    undone = {each.undo_of: each.name for each in books.all() if each.undo_of}
    rows = [_row(books, each, undone.get(each.name)) for each in found.rows]
    turn = pager("/runs", found.number, found.pages)
    return {"history": f"<section>{table(RUN_HEADS, rows, left=4, caption='runs')}{turn}</section>"}


def _row(books: RunBooks, book: RunBook, undone_by: str | None) -> tuple[object, ...]:
    if book.wrong:
        return (run_link(book.name), book.wrong, *["–"] * (len(RUN_HEADS) - 2))
    outcome = outcome_of(books, book)
    undone = f"<br><small>undone by {run_link(undone_by)}</small>" if undone_by else ""
    report = f"<br><small>{link('report', f'{run_address(book.name)}/report')}</small>"
    return (
        run_link(book.name),
        Markup(f"{escape(_title(book))}{undone}"),
        Markup(f"<span class='{_KINDS.get(outcome, '')}'>{outcome}</span>{report}"),
        book.who,
        at(book.began_ms),
        took(book),
        "–" if book.prediction is None else human_duration(book.prediction.seconds.p50),
        off_by(book),
        f"{book.arrived:,} of {book.moves:,}",
        human_bytes(book.bytes_to_copy),
    )


def took(book: RunBook) -> str:
    """Return how long a run took, from its begin to its end."""
    return "–" if book.ended_ms is None else human_duration((book.ended_ms - book.began_ms) / 1000)


def off_by(book: RunBook) -> str:
    """Return how much longer it took than was predicted."""
    error = book.prediction_error
    return "–" if error is None else f"{error:+.1%}"


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
    return book.title or "plan"


def run_page(books: RunBooks, book: RunBook, number: int, actions: str = "") -> Shown:
    """Return one run's page. `actions` are the forms of an operator."""
    parts = run_parts(books, book, number)
    body = live("run", parts["run"]) + actions
    body += "".join(live(name, html) for name, html in parts.items() if name != "run")
    return Shown(
        title=f"Run {book.name}",
        body=body,
        feed=address("/events", page="run", name=book.name, number=number),
    )


def run_parts(books: RunBooks, book: RunBook, number: int) -> dict[str, str]:
    """Return its live parts."""
    if book.wrong:
        return {"run": titled("The journal", paragraph(book.wrong, "bad"))}
    return {
        "run": _mark(books, book)
        + tiles(run_tiles(books, book))
        + _progress(books, book)
        + _said(books, book),
        "timeline": _timeline(book),
        "flows": _flows(books, book),
        "events": _events(book),
        "moves": _moves(book, number),
    }


def _mark(books: RunBooks, book: RunBook) -> str:
    """Return what the script shows and hides forms by."""
    return f"<span hidden data-run='{state_of(books, book)}'></span>"


def state_of(books: RunBooks, book: RunBook) -> str:
    """Return what an operator can do with a run: change it when "active", let it go on when "paused"."""
    if not books.is_active(book):
        return "ended"
    return "paused" if book.status is not None and book.status.paused else "active"


def run_tiles(books: RunBooks, book: RunBook) -> Iterator[Tile]:
    """Return the headline numbers of a run."""
    outcome = outcome_of(books, book)
    kind = "good" if outcome == "done" else "bad" if _KINDS.get(outcome) == "state-bad" else ""
    yield Tile(value=outcome, name="now" if books.is_active(book) else "outcome", kind=kind)
    yield Tile(value=f"{book.arrived:,} of {book.moves:,}", name="moves arrived")
    status = book.status
    if status is not None and books.is_active(book):
        report = status.report
        yield Tile(value=human_rate(report.rate), name="copied in all")
        if not status.paused:
            yield Tile(value="?" if report.eta_s is None else human_duration(report.eta_s), name="left")
        yield Tile(value=_throttle(status), name="throttle per broker")
        bad = status.under_replicated or status.offline
        yield Tile(
            value=f"{status.under_replicated:,} / {status.offline:,}",
            name="under-replicated / offline",
            kind="bad" if bad else "",
        )
    elif book.ended_ms is not None:
        yield Tile(value=took(book), name="took")
    yield from _predicted(book)


def _predicted(book: RunBook) -> Iterator[Tile]:
    if book.prediction is None:
        return
    seconds, ahead = book.prediction.seconds, None
    low, middle, high = (human_duration(each) for each in (seconds.p10, seconds.p50, seconds.p90))
    rest = "predicted of the rest" if book.prediction.resumed else "predicted"
    yield Tile(value=middle, name=f"{rest}: {low} to {high}")
    if book.prediction_error is not None:
        words = "longer than predicted" if book.prediction_error > 0 else "shorter than predicted"
        yield Tile(value=f"{abs(book.prediction_error):.1%}", name=words)
    elif book.steered:
        yield Tile(value="changed", name=f"by an operator meanwhile: {', '.join(book.steered)}")
    elif book.ended_ms is None and book.status is not None and book.status.predicted is not None:
        ahead = book.status.predicted.ahead_s
    if book.held:
        yield Tile(value="paused", name=f"by a guard meanwhile: {book.held}")
    if book.waited:
        waited, _, why = book.waited.partition(": ")
        yield Tile(value=waited, name=f"in which nothing could move: {why}")
    if ahead is not None:
        words = "ahead of the prediction" if ahead >= 0 else "behind the prediction"
        yield Tile(value=human_duration(abs(ahead)), name=words)


def _throttle(status: RunStatus) -> str:
    if status.throttle is None:
        return "none"
    return human_rate(status.throttle) + (" (auto)" if status.auto else "")


def _progress(books: RunBooks, book: RunBook) -> str:
    total = book.bytes_to_copy
    done = book.arrived_bytes[-1][1] if book.arrived_bytes else 0
    due = None
    if book.status is not None and books.is_active(book):
        done, total = book.status.report.done_bytes, book.status.report.to_do_bytes
        due = book.status.predicted.due_bytes if book.status.predicted is not None else None
    words = f"{human_bytes(done)} of {human_bytes(total)} copied" + (f", {done / total:.0%}" if total else "")
    words += f"; by the prediction {human_bytes(due)} by now" if due is not None else ""
    shown = progress(done, total, words, due)
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
    where = run_address(book.name)
    files = link("Report", f"{where}/report"), link("JSON", f"/api/v1{where}")
    return (
        "".join(parts) + f"<section><h2>Plan</h2><dl class='facts'>{rows}</dl>"
        f"<p>Download: {' '.join(files)}</p></section>"
    )


def _flows(books: RunBooks, book: RunBook) -> str:
    if book.status is None or not books.is_active(book):
        return ""
    report = book.status.report
    brokers = [
        (
            broker_link(each.broker),
            meter(each.done_bytes, each.to_do_bytes, "received"),
            f"{human_bytes(each.done_bytes)} of {human_bytes(each.to_do_bytes)}",
            human_rate(each.received_rate),
            meter(each.sent_bytes, each.to_send_bytes, "sent"),
            f"{human_bytes(each.sent_bytes)} of {human_bytes(each.to_send_bytes)}",
            human_rate(each.sent_rate),
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
    heads = ("broker", "receives", "received", "rate in", "sends", "sent", "rate out", "moving")
    parts = [table(heads, brokers, caption="brokers")] if brokers else []
    if copies:
        parts.append("<h3>Replicas under way</h3>")
        names = ("partition", "from", "to", "copied", "bytes", "")
        parts.append(table(names, copies, caption="replicas under way"))
        more = len(report.copying) - len(copies)
        parts.append(paragraph(f"and {more:,} more") if more > 0 else "")
    return titled("Flows", *parts) if parts else ""


def over_time(book: RunBook) -> str:
    """Return the bytes that were copied over time, beside what was predicted."""
    drawn, predicted = [], book.prediction
    from_ms = book.began_ms if predicted is None else predicted.start_ms
    if len(book.copied) > 1:
        drawn.append(_line("copied", [(round(1000 * at_s), size) for at_s, size in book.copied], from_ms))
    if len(book.arrived_bytes) > 1:
        arrived = thinned([(book.began_ms, 0), *book.arrived_bytes], _POINTS)
        drawn.append(_line("moves that have arrived", arrived, 0))
    if predicted is not None and len(predicted.curve) > 1:
        ahead = [(round(1000 * at_s), size) for at_s, size in predicted.curve]
        drawn.append(_line("as predicted", ahead, from_ms, "predicted"))
    return lines(drawn, label="bytes copied over time, as they were and as predicted")


def _timeline(book: RunBook) -> str:
    picture = over_time(book)
    note = "Bytes copied over time, in UTC."
    return titled("Predicted and actual", picture, note=note) if picture else ""


def _line(name: str, points: Sequence[tuple[int, float]], from_ms: int, kind: str = "") -> Line:
    moved = tuple(((from_ms + at_ms) / 1000, float(size)) for at_ms, size in points)
    return Line(name=name, points=moved, kind=kind)


def _moves(book: RunBook, number: int) -> str:
    if book.start is None:
        return ""
    found = book.order.page(number, _ROWS)
    whole_ms = max((book.ended_ms or book.last_ms) - book.began_ms, 1)
    rows = [_move_row(book, each, whole_ms) for each in found.rows]
    heads = ("partition", "from", "to", "to copy", "from begin to arrival", "begun", "arrived", "why")
    turn = pager(run_address(book.name), found.number, found.pages)
    shown = table(heads, rows, left=8, caption="moves")
    note = f"Each bar is a part of the {human_duration(whole_ms / 1000)} of the run so far."
    return titled(f"Timeline of {count(found.total, 'move')}", shown, turn, note=note)


def _move_row(book: RunBook, move: ShownMove, whole_ms: int) -> tuple[object, ...]:
    times = book.times.get(move.partition)
    begun = None if times is None else (times.begun_ms - book.began_ms) / whole_ms
    ended = 1.0 if times is None or times.ended_ms is None else (times.ended_ms - book.began_ms) / whole_ms
    part = "time" if whole_ms <= _SHORT_MS else ""
    return (
        partition_link(move.partition),
        ids(move.before),
        ids(move.after),
        human_bytes(move.bytes_to_copy),
        "–" if begun is None else span(begun, ended, _lasted(times)),
        "–" if times is None else at(times.begun_ms, part),
        "–" if times is None else f"left out: {times.dropped}" if times.dropped else at(times.ended_ms, part),
        move.reason,
    )


def _lasted(times: PartitionTimes | None) -> str:
    if times is None or times.ended_ms is None:
        return "under way"
    return f"took {human_duration((times.ended_ms - times.begun_ms) / 1000)}"


def _events(book: RunBook) -> str:
    latest = book.events[-_EVENTS:][::-1]
    rows = [(at(each.at_ms), each.text) for each in latest]
    note = f"The latest {len(latest):,} of {count(len(book.events), 'event')}."
    shown = table(("when", "what"), rows, left=2, caption="events", most=_EVENTS)
    scrolls = f"<div class='scroll' tabindex='0' role='region' aria-label='What happened'>{shown}</div>"
    return titled("What happened", scrolls, note=note if len(latest) < len(book.events) else "")


def run_report(books: RunBooks, book: RunBook) -> str:
    """Return a run as one HTML file to keep: it needs neither the server nor the journal."""
    moves = [
        (
            str(each.partition),
            ids(each.before),
            ids(each.after),
            human_bytes(each.bytes_to_copy),
            _lasted(book.times.get(each.partition)) if each.partition in book.times else "not begun",
            each.reason,
        )
        for each in book.order
    ]
    events = [(at(each.at_ms), each.text) for each in book.events]
    heads = ("partition", "from", "to", "to copy", "how long", "why")
    return page(
        ReportPage(
            title=f"Run {book.name}",
            lead=f"{_title(book)}, by {book.who}. Digest {book.digest}.",
            tiles=tuple(run_tiles(books, book)),
            sections=(
                Section(title="Over time", parts=(over_time(book),)),
                Section(title="What happened", parts=(table(("when", "what"), events, left=2),)),
                Section(title="Moves", parts=(table(heads, moves, left=6),)),
            ),
            footer=f"Restow, cluster {book.start.cluster_id if book.start is not None else ''}",
        )
    )
