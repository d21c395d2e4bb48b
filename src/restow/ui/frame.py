"""The frame of every page: navigation, the main part, and where the data is from."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode

from starlette.responses import HTMLResponse

from restow._frozen import frozen
from restow.html.page import Markup, link, paragraph
from restow.ui.addresses import plan_address, run_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from restow.ui.sessions import UiSession

_PAGES = (
    ("Cluster", "/"),
    ("Topics", "/topics"),
    ("Groups", "/groups"),
    ("Plans", "/plans"),
    ("Runs", "/runs"),
    ("Audit", "/audit"),
)
# Without scripts, a page that has nothing to show yet asks again every three seconds.
_COME_BACK = "<noscript><meta http-equiv='refresh' content='3'></noscript>"
_NO_SCRIPT = "Without scripts this page does not follow changes: reload it to see them."


@frozen
class Shown:
    """One page: its title, its main part, and the address of its live parts."""

    title: str
    body: str
    feed: str = ""
    status: int = 200
    incomplete: bool = False


@frozen
class Around:
    """What stands around the main part."""

    session: UiSession | None
    path: str
    cluster: str = ""
    read_only: bool = False


def framed(shown: Shown, around: Around) -> HTMLResponse:
    """Return the whole page."""
    feed = f" data-feed='{escape(shown.feed)}'" if shown.feed else ""
    cluster = f"<span class='cluster'>{escape(around.cluster)}</span>" if around.cluster else ""
    return HTMLResponse(
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{escape(shown.title)} · Restow</title><link rel='stylesheet' href='/static/style.css'>"
        "<link rel='icon' href='/static/icon.svg'><script src='/static/script.js' defer></script>"
        f"{_COME_BACK if shown.incomplete else ''}</head>"
        f"<body{feed}><a class='skip' href='#main'>Skip to the content</a>"
        f"<header><a class='brand' href='/'>Restow</a>{_navigation(around)}{cluster}{_who(around)}</header>"
        f"<main id='main' tabindex='-1'><h1>{escape(shown.title)}</h1>"
        f"<p id='live' class='note' role='status'></p>{shown.body}</main>"
        f"<noscript>{paragraph(_NO_SCRIPT)}</noscript></body></html>\n",
        status_code=shown.status,
    )


def _navigation(around: Around) -> str:
    if around.session is None:
        return ""
    first = "/" + around.path.strip("/").partition("/")[0]
    kind = {
        "/brokers": "/",
        "/broker": "/",
        "/topic": "/topics",
        "/partition": "/topics",
        "/group": "/groups",
        "/starts": "/runs",
    }.get(first, first)
    items = "".join(
        f"<li><a href='{address}'{_current(address == kind)}>{name}</a></li>" for name, address in _PAGES
    )
    return f"<nav aria-label='Pages'><ul>{items}</ul></nav>"


def _current(is_current: bool) -> str:
    return " aria-current='page'" if is_current else ""


def _who(around: Around) -> str:
    if around.session is None or around.session.csrf is None:
        return ""
    role = "read-only" if around.read_only else around.session.role.name.lower()
    return (
        f"<form class='who' method='post' action='/logout'>{hidden(around.session)}<span>{role}</span>"
        "<button class='plain'>Leave</button></form>"
    )


def error_page(status: int, message: str, around: Around | None = None) -> HTMLResponse:
    """Return a page that says what is wrong and what to do."""
    around = around or Around(session=None, path="/")
    back = link(*_back_from(around.path))
    body = f"<section>{paragraph(message, 'bad')}<p>{back}</p></section>"
    return framed(Shown(title=_TITLES.get(status, "This did not work"), body=body, status=status), around)


def _back_from(path: str) -> tuple[str, str]:
    """Return where to go after a refusal: to the plan or run that something was asked of."""
    kind, *rest = path.strip("/").split("/")
    if kind == "plans" and len(rest) > 1:
        return "To the plan", plan_address(quote(rest[0], safe=""))
    if kind == "runs" and len(rest) > 1:
        return "To the run", run_address(rest[0])
    return "To the cluster", "/"


_TITLES = {
    401: "Enter first",
    403: "Refused",
    404: "Not found",
    413: "Too large",
    421: "Another server",
    503: "Not now",
}


def style() -> str:
    """Return the style sheet: that of all our pages, and what only these have."""
    own = files(__package__).joinpath("style.css").read_text(encoding="utf-8")
    return files("restow.html").joinpath("page.css").read_text(encoding="utf-8") + own


def script() -> str:
    """Return the script."""
    return files(__package__).joinpath("script.js").read_text(encoding="utf-8")


def hidden(session: UiSession | None, fields: Mapping[str, str] | None = None) -> str:
    """Return the hidden fields of a form: the token against forged requests, and others."""
    given = {"csrf": (session.csrf if session is not None else None) or "", **(fields or {})}
    return "".join(
        f"<input type='hidden' name='{escape(name)}' value='{escape(value)}'>"
        for name, value in given.items()
    )


def live(name: str, html: str) -> str:
    """Return a part of a page that its feed replaces."""
    return f"<div id='{name}'>{html}</div>"


def live_parts(parts: Mapping[str, str]) -> str:
    """Return all parts of a page that its feed replaces, by name."""
    return "".join(live(name, html) for name, html in parts.items())


def address(path: str, **query: object) -> str:
    """Return an address of ours with what it asks for, quoted."""
    asked = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(asked)}" if asked else path


def at(ms: int | None, part: str = "") -> Markup:
    """Return a moment, or its "date" or "time"; the script writes it in the reader's own time zone."""
    if ms is None:
        return Markup("–")
    moment = datetime.fromtimestamp(ms / 1000, UTC)
    told = moment.strftime({"date": "%Y-%m-%d", "time": "%H:%M:%S UTC"}.get(part, "%Y-%m-%d %H:%M:%S UTC"))
    shown = f" data-part='{part}' title='{moment:%Y-%m-%d %H:%M:%S} UTC'" if part else ""
    return Markup(f"<time datetime='{moment.isoformat(timespec='seconds')}'{shown}>{told}</time>")


def pager(path: str, number: int, pages: int, *, part: str = "", **query: object) -> str:
    """Return links to the pages of a long list, which may be a part of its page."""
    if pages <= 1:
        return ""
    links: Iterable[str] = (
        link(name, address(path, page=to, **query) + (f"#{part}" if part else ""))
        for name, to in (("first", 1), ("previous", number - 1), ("next", number + 1), ("last", pages))
        if 1 <= to <= pages and to != number
    )
    where = f"page {number:,} of {pages:,}"
    return f"<nav class='pager' aria-label='Pages of this list'>{where} {' '.join(links)}</nav>"


def run_link(name: str) -> Markup:
    """Return a link to a run's page."""
    return link(name, run_address(name))
