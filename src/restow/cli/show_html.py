"""A plan as a page of its own: no script, nothing from elsewhere, drawn with SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from restow.cli.plan_view import GOAL_HEADS, goal_cells
from restow.cli.sizes import human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.model import Move, Plan
    from restow.plan.amounts import Amount
    from restow.plan.explain import Explanation, GoalLine

_MOST_MOVES = 500
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } th, td { padding: .2rem .6rem; text-align: right }
th:first-child, td:first-child { text-align: left } th { font-weight: 500; color: #667 }
tr:nth-child(even) td { background: #f5f7fa } .note { color: #667 } .bad { color: #a33 }
.before { fill: #b9c6d6 } .after { fill: #2f7d6d } text { font: 12px system-ui, sans-serif }
"""


def page_of(plan: Plan, told: Explanation | None = None, dirs: Sequence[Amount] = ()) -> str:
    """The whole page; directories are shown where brokers have several."""
    title = escape(plan.title or "plan")
    copied = human_bytes(plan.bytes_to_copy)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>{len(plan.moves):,} moves in {len(plan.waves):,} waves, {copied} to copy{_bound(plan)}.</p>",
    ]
    if told is not None:
        parts += ["<h2>Brokers</h2>", picture_of(told.brokers), "<h2>Goals</h2>", _goals(told.goals)]
        parts += ["<h2>Racks</h2>", _amounts(told.racks)]
        if len(dirs) > len(told.brokers):
            parts += ["<h2>Log dirs</h2>", _amounts(dirs)]
        unmet = [f"{each.goal} of broker {each.broker}: {each.because}" for each in told.unmet]
        parts += [f"<p class='bad'>{escape(line)}</p>" for line in unmet[:50]]
        parts += [f"<p class='note'>{escape(note.text)}</p>" for note in told.notes]
    parts += ["<h2>Moves</h2>", _moves(plan.moves), "</body></html>\n"]
    return "\n".join(parts)


def picture_of(brokers: Sequence[Amount]) -> str:
    """Bytes of each broker before and after, as an SVG picture."""
    most = max((max(each.before_bytes, each.after_bytes) for each in brokers), default=0) or 1
    rows = []
    for number, each in enumerate(brokers):
        top = 24 * number
        for kind, value, below in (("before", each.before_bytes, 2), ("after", each.after_bytes, 11)):
            width = 480 * value / most
            rows.append(f"<rect class='{kind}' x='60' y='{top + below}' width='{width:.1f}' height='8'/>")
        change = f"{human_bytes(each.before_bytes)} → {human_bytes(each.after_bytes)}"
        rows.append(f"<text x='0' y='{top + 15}'>{escape(each.name)}</text>")
        rows.append(f"<text x='550' y='{top + 15}'>{change}</text>")
    height = 24 * len(brokers) + 4
    style = "<style>.before{fill:#b9c6d6}.after{fill:#2f7d6d}text{font:12px sans-serif;fill:#667}</style>"
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 720 {height}' role='img' "
        f"aria-label='bytes of each broker before and after'>{style}{''.join(rows)}</svg>"
    )


def _bound(plan: Plan) -> str:
    if not plan.bound_bytes:
        return ""
    ratio = plan.bytes_to_copy / plan.bound_bytes
    return f"; at least {human_bytes(plan.bound_bytes)} have to be: {ratio:.4f} times the least possible"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "".join(f"<th>{escape(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _goals(goals: Iterable[GoalLine]) -> str:
    return _table(GOAL_HEADS, map(goal_cells, goals))


def _amounts(amounts: Iterable[Amount]) -> str:
    return _table(
        ("", "bytes before", "after", "replicas before", "after"),
        (
            (
                each.name,
                human_bytes(each.before_bytes),
                human_bytes(each.after_bytes),
                f"{each.before_replicas:,}",
                f"{each.after_replicas:,}",
            )
            for each in amounts
        ),
    )


def _moves(moves: Sequence[Move]) -> str:
    table = _table(
        ("partition", "before", "after", "to copy", "why"),
        (
            (
                str(move.partition),
                ", ".join(map(str, move.before)),
                ", ".join(map(str, move.after)),
                human_bytes(move.bytes_to_copy),
                move.reason,
            )
            for move in moves[:_MOST_MOVES]
        ),
    )
    more = len(moves) - _MOST_MOVES
    return table + (f"<p class='note'>and {more:,} more</p>" if more > 0 else "")
