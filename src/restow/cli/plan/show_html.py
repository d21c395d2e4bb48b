"""A plan as one HTML file with SVG pictures, without scripts or external files."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from restow.cli.plan.show_view import limits_of, times
from restow.cli.plan.view import GOAL_HEADS, goal_cells
from restow.html import bars, table
from restow.plan.files.text import digest_of
from restow.sizes import human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from restow.model import Left, Move, Plan
    from restow.plan.explain.amounts import Amount
    from restow.plan.explain.explain import Explanation, GoalLine
    from restow.plan.explain.view import PlanView

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } th, td { padding: .2rem .6rem; text-align: right }
th:first-child, td:first-child { text-align: left } th { font-weight: 500; color: #667 }
tr:nth-child(even) td { background: #f5f7fa } .note { color: #667 } .bad { color: #a33 }
"""


def page_of(
    plan: Plan,
    view: PlanView,
    told: Explanation | None = None,
    dirs: Sequence[Amount] = (),
    rate: int | None = None,
) -> str:
    """Return the page. `told` and `dirs` are known only when the plan is made; a plan file has the rest.

    `rate` is the throttle for the expected time; None shows several usual ones.
    """
    title = escape(plan.title or "plan")
    copied = human_bytes(plan.bytes_to_copy)
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        f"<title>{title}</title><style>{_STYLE}</style></head><body><h1>{title}</h1>",
        f"<p>{len(plan.moves):,} moves in {len(plan.waves):,} waves, {copied} to copy{_bound(plan)}.</p>",
        f"<p>It {escape(times(view, rate))}, if nothing else slows it down.</p>",
        f"<p class='note'>digest {digest_of(plan)}<br>cluster {escape(plan.cluster_id)}</p>",
        f"<p class='note'>{escape(limits_of(plan))}</p>",
    ]
    if plan.leaves:
        parts += ["<h2>Left behind</h2>", _left(plan.leaves)]
    whole = [(str(each.broker), each.before.size_bytes, each.after.size_bytes) for each in view.brokers]
    if told is not None:
        whole = [(each.name, each.before_bytes, each.after_bytes) for each in told.brokers]
    scope = "" if told is not None or view.whole_cluster else ", as far as the plan's partitions go"
    parts += [f"<h2>Brokers{scope}</h2>", bars(whole), _traffic(view)]
    if view.dirs:
        parts += ["<h2>Log dirs that the plan names</h2>", _dirs(view)]
    if told is not None:
        if len(dirs) > len(told.brokers):
            parts += ["<h2>All log dirs</h2>", _amounts(dirs)]
        parts += ["<h2>Goals</h2>", _goals(told.goals)]
        parts += ["<h2>Racks</h2>", _amounts(told.racks)]
        unmet = [f"{each.goal} of broker {each.broker}: {each.because}" for each in told.unmet]
        parts += [f"<p class='bad'>{escape(line)}</p>" for line in unmet[:50]]
        parts += [f"<p class='note'>{escape(note.text)}</p>" for note in told.notes]
    parts += ["<h2>Moves</h2>", _moves(plan.moves), "</body></html>\n"]
    return "\n".join(parts)


def _left(leaves: Sequence[Left]) -> str:
    return table(("partition", "why"), [(each.partition, each.why) for each in leaves])


def _traffic(view: PlanView) -> str:
    return table(
        ("broker", "replicas", "first of", "receives", "sends", "between its log dirs"),
        [
            (
                str(each.broker),
                f"{each.before.replicas:,} → {each.after.replicas:,}",
                f"{each.before.preferred:,} → {each.after.preferred:,}",
                *map(human_bytes, (each.received_bytes, each.sent_bytes, each.dir_bytes)),
            )
            for each in view.brokers
        ],
    )


def _dirs(view: PlanView) -> str:
    rows = [
        (f"broker {each.broker}", each.path, human_bytes(each.in_bytes), human_bytes(each.out_bytes))
        for each in view.dirs
    ]
    return table(("broker", "log dir", "comes in", "goes out"), rows)


def _bound(plan: Plan) -> str:
    if not plan.bound_bytes:
        return ""
    ratio = plan.bytes_to_copy / plan.bound_bytes
    return f"; at least {human_bytes(plan.bound_bytes)} have to be: {ratio:.4f} times the least possible"


def _goals(goals: Iterable[GoalLine]) -> str:
    return table(GOAL_HEADS, [goal_cells(each) for each in goals])


def _amounts(amounts: Iterable[Amount]) -> str:
    return table(
        ("", "bytes before", "after", "replicas before", "after"),
        [
            (
                each.name,
                human_bytes(each.before_bytes),
                human_bytes(each.after_bytes),
                f"{each.before_replicas:,}",
                f"{each.after_replicas:,}",
            )
            for each in amounts
        ],
    )


def _moves(moves: Sequence[Move]) -> str:
    return table(
        ("partition", "before", "after", "to copy", "why"),
        [
            (
                move.partition,
                ", ".join(map(str, move.before)),
                ", ".join(map(str, move.after)),
                human_bytes(move.bytes_to_copy),
                move.reason,
            )
            for move in moves
        ],
    )
