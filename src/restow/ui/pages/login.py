"""The page where a token is exchanged for a session."""

from __future__ import annotations

from restow.html.page import paragraph
from restow.ui.frame import Shown


def login_page(wrong: str = "") -> Shown:
    """Return the page; `wrong` says why the last try failed."""
    said = paragraph(wrong, "bad") if wrong else ""
    return Shown(
        title="Enter",
        status=403 if wrong else 200,
        body=(
            f"<section><form class='login fields' method='post' action='/login'>{said}"
            "<label>Token<small>The server printed it when it started.</small>"
            "<input name='token' type='password' autocomplete='off' required></label>"
            "<div><button>Enter</button></div></form></section>"
        ),
    )
