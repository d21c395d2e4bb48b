"""Small pictures that only these pages have: one bar of a timeline, and the progress of a run."""

from __future__ import annotations

from html import escape

from restow.html.page import Markup

_SPAN, _PROGRESS = (300, 10), (600, 18)


def span(begun: float, ended: float, tip: str) -> Markup:
    """Draw a bar between two parts of a whole, from 0 to 1."""
    wide, high = _SPAN
    begun, ended = min(max(begun, 0.0), 1.0), min(max(ended, 0.0), 1.0)
    left = min(wide * begun, wide - 1.5)
    width = max(wide * (ended - begun), 1.5)
    return Markup(
        f"<svg class='span' viewBox='0 0 {wide} {high}' width='{wide}' height='{high}' role='img' "
        f"aria-label='{escape(tip)}'><title>{escape(tip)}</title>"
        f"<rect class='track' width='{wide}' height='{high}' rx='3'/>"
        f"<rect class='bar plain' x='{left:.1f}' width='{width:.1f}' height='{high}' rx='3'/></svg>"
    )


def progress(done: int, total: int, tip: str, due: int | None = None) -> Markup:
    """Draw how much is done, with a mark where it should be by now."""
    wide, high = _PROGRESS
    part = min(wide * done / total, wide) if total > 0 else 0.0
    mark = ""
    if due is not None and total > 0:
        at = min(wide * due / total, wide - 1)
        mark = f"<line class='due' x1='{at:.1f}' x2='{at:.1f}' y1='0' y2='{high}'/>"
    return Markup(
        f"<svg class='whole' viewBox='0 0 {wide} {high}' role='img' preserveAspectRatio='none' "
        f"aria-label='{escape(tip)}'>"
        f"<title>{escape(tip)}</title><rect class='track' width='{wide}' height='{high}' rx='4'/>"
        f"<rect class='bar fine' width='{part:.1f}' height='{high}' rx='4'/>{mark}</svg>"
    )
