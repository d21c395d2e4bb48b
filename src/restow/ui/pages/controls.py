"""What an operator can do with a run, and what it says before it is done."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from restow.html.page import link, paragraph, table, titled
from restow.sizes import count, human_bytes
from restow.ui.addresses import run_address
from restow.ui.forms import check_field, text_field
from restow.ui.frame import Shown, at, hidden, live_parts
from restow.ui.pages.runs import state_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.ui.jobs import CommandJob
    from restow.ui.run_books import RunBook, RunBooks
    from restow.ui.sessions import UiSession

_ROWS = 100
CONFIRMED = {"cancel": "Cancel it", "resume": "Resume it", "undo": "Move it back"}


def run_actions(
    books: RunBooks,
    book: RunBook,
    session: UiSession,
    given: Mapping[str, str] | None = None,
    wrong: str = "",
) -> str:
    """Return the forms; with what was filled in, and what was wrong with it.

    Those that do not fit the run's present state are hidden, and would be refused.
    """
    where, given = run_address(book.name), given or {}
    fields, state = hidden(session), state_of(books, book)
    pause = "".join(
        f"<form method='post' action='{where}/control'{_when(state, when)}>{fields}<button class='plain' "
        f"name='action' value='{action}'>{words}</button></form>"
        for when, action, words in (("active", "pause", "Pause"), ("paused", "go on", "Go on"))
    )
    inputs = "".join(
        text_field(name, label, given.get(name, ""), example=example)
        for name, label, example in (
            ("throttle", "Throttle", "50MB/s"),
            ("moves_in", "Moves in per broker", "20"),
            ("moves_out", "Moves out per broker", "10"),
        )
    )
    change = f"<form method='post' action='{where}/control'>{fields}{inputs}<button>Change</button></form>"
    said = paragraph(wrong, "bad") if wrong else ""
    return (
        f"<section{_when(state, 'active paused')}><h2>Change this run</h2>{said}<div class='actions'>"
        f"{pause}{change}{_ask(where, 'cancel', 'Cancel …')}</div></section>"
        f"<section{_when(state, 'ended')}><h2>What next</h2><div class='actions'>"
        f"{_ask(where, 'resume', 'Resume …')}{_ask(where, 'cancel', 'Cancel …')}"
        f"{_ask(where, 'undo', 'Undo …')}</div></section>"
    )


def _when(state: str, states: str) -> str:
    """Return the attributes of what is only shown in some states of a run."""
    return f" data-when='{states}'{'' if state in states.split() else ' hidden'}"


def _ask(where: str, command: str, words: str) -> str:
    return f"<a class='button' href='{where}/{command}'>{words}</a>"


def confirm_page(book: RunBook, command: str, told: Mapping[str, Any], session: UiSession) -> Shown:
    """Return what a command would do, as the command itself says, and the button that does it."""
    where = run_address(book.name)
    throttle = ""
    if command != "cancel":
        throttle = text_field(
            "throttle", "Throttle", "auto", hint="A rate per broker like 50MB/s, auto or none."
        )
    partly = check_field("as_far_as_possible", "Skip what cannot be moved back") if command == "undo" else ""
    form = (
        f"<form class='row' method='post' action='{where}/{command}'>{hidden(session)}{throttle}{partly}"
        f"<button class='danger'>{CONFIRMED[command]}</button>{link('No, back to the run', where)}</form>"
    )
    what = titled("What will happen", paragraph(_sentence(command, told)), _listed(told))
    return Shown(title=f"{command.capitalize()} run {book.name}?", body=f"{what}<section>{form}</section>")


def _sentence(command: str, told: Mapping[str, Any]) -> str:
    if command == "undo":
        moves = count(len(told["moves"]), "partition")
        copied = human_bytes(told["bytes_to_copy"])
        return f"{moves} will be moved back to where they were before the run, with {copied} to copy."
    if command == "cancel":
        moves, throttles = count(len(told["under_way"]), "move"), count(told["throttles"], "throttle setting")
        return f"{moves} under way will be taken back, and {throttles} restored. What has arrived stays."
    left = count(told["partitions_left"], "partition")
    alone = told["left_alone"]
    others = f" {count(len(alone), 'partition')} will be left alone." if alone else ""
    return f"{left} are left to move, {told['under_way']} of them under way.{others}"


def _listed(told: Mapping[str, Any]) -> str:
    if told.get("moves"):
        rows = [
            (each["partition"], ", ".join(map(str, each["before"])), ", ".join(map(str, each["after"])))
            for each in told["moves"]
        ]
        return table(("partition", "from", "to"), rows, left=3, most=_ROWS, caption="moves")
    under_way = told.get("under_way")
    if isinstance(under_way, list) and under_way:
        return table(("under way",), [(each,) for each in under_way], most=_ROWS)
    alone = told.get("left_alone") or {}
    return table(("left alone", "why"), list(alone.items()), left=2, most=_ROWS) if alone else ""


def start_page(job: CommandJob) -> Shown:
    """Return the page between the button and the run."""
    parts = start_parts(job)
    if "go" in parts:
        body = f"<section><p>{link('To the run', parts['go'])}</p></section>"
    else:
        body = live_parts(parts)
    return Shown(
        title=job.title.capitalize(),
        body=body,
        feed=f"/events?page=start&job={job.id}",
        incomplete=not job.run and not job.is_over,
    )


def start_parts(job: CommandJob) -> dict[str, str]:
    """Return what has become of a command; the page goes on to the run when there is one."""
    if job.run:
        return {"go": run_address(job.run)}
    if not job.is_over:
        words = f"It begins: the command checks everything first. Asked for at {at(job.started_ms)}."
        return {"start": f"<section><p>{words}</p></section>"}
    if job.code == 0:
        return {"start": f"<section><p>Done. {link('To the runs', '/runs')}</p></section>"}
    said = job.said or job.outcome or "the command ended without a word"
    back = f"<p>{link('Back', job.back)}</p>" if job.back else ""
    return {"start": f"<section><h2>It did not begin</h2><p class='bad'>{escape(said)}</p>{back}</section>"}
