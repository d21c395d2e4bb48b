"""How a new plan is shown: goals before and after, what moves, and what could not be reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from restow.model import Plan
    from restow.plan.explain import Explanation

_BAR = 24


def document(plan: Plan, told: Explanation) -> dict[str, object]:
    """What `--json` prints."""
    from restow.plan.text import digest_of

    return {
        "title": plan.title,
        "digest": digest_of(plan),
        "moves": len(plan.moves),
        "waves": len(plan.waves),
        "copied_bytes": told.copied_bytes,
        "bound_bytes": told.bound_bytes,
        "bound_by": plan.bound_by,
        "ratio": told.ratio,
        "reasons": dict(told.reasons),
        "goals": [
            {
                "name": goal.name,
                "band": goal.band,
                "before": list(goal.before),
                "after": list(goal.after),
                "out_of_band": goal.out_of_band,
            }
            for goal in told.goals
        ],
        "brokers": [
            {
                "id": int(each.name),
                "bytes": [each.before_bytes, each.after_bytes],
                "replicas": [each.before_replicas, each.after_replicas],
            }
            for each in told.brokers
        ],
        "unmet": [
            {"goal": each.goal, "broker": each.broker, "ratio": each.ratio, "because": each.because}
            for each in told.unmet
        ],
        "notes": list(told.notes),
    }


def draw(console: Console, plan: Plan, told: Explanation) -> None:
    """Tables and a few sentences."""
    from restow.cli.drawing import count, put
    from restow.cli.sizes import human_bytes

    if not plan.moves:
        put(console, "Nothing to move.", style="bold")
    else:
        moved = f"{count(len(plan.moves), 'partition')} in {count(len(plan.waves), 'wave')}"
        put(console, f"{plan.title}: {moved}, {human_bytes(told.copied_bytes)} to copy", style="bold")
    if told.ratio is not None:
        least = f"at least {human_bytes(told.bound_bytes or 0)} have to be"
        console.print(f"{least}; this is {told.ratio:.4f} times that ({plan.bound_by})", style="dim")
    _draw_goals(console, told)
    _draw_brokers(console, told)
    for each in told.unmet[:10]:
        line = f"{each.goal} of broker {each.broker} stays at {each.ratio:.2f} × its share: {each.because}"
        console.print(line, style="yellow")
    if len(told.unmet) > 10:
        put(console, f"and {len(told.unmet) - 10:,} more that stay out of band", style="yellow")
    for note in told.notes:
        console.print(note, style="dim")


def _draw_goals(console: Console, told: Explanation) -> None:
    from restow.cli.table_view import LABEL, NUMBER, Grid

    table = Grid(
        ("goal", LABEL),
        ("band", NUMBER),
        ("max/share before", NUMBER),
        ("max/share after", NUMBER),
        ("min/share before", NUMBER),
        ("min/share after", NUMBER),
        ("out of band", NUMBER),
    )
    for goal in told.goals:
        table.add_row(
            goal.name,
            "–" if goal.band is None else f"±{goal.band:.0%}",
            f"{goal.before[0]:.3f}",
            f"{goal.after[0]:.3f}",
            f"{goal.before[1]:.3f}",
            f"{goal.after[1]:.3f}",
            str(goal.out_of_band or "-"),
        )
    console.print()
    console.print(table)
    console.print()


def _draw_brokers(console: Console, told: Explanation) -> None:
    from restow.cli.drawing import bar, glyphs, middle_out
    from restow.cli.sizes import human_bytes
    from restow.cli.table_view import BAR, NUMBER, Grid

    most = max((max(each.before_bytes, each.after_bytes) for each in told.brokers), default=0)
    marks = glyphs(console)
    table = Grid(
        ("broker", NUMBER), ("before", NUMBER), ("", BAR), ("after", NUMBER), ("", BAR), ("replicas", NUMBER)
    )
    head, tail = middle_out(len(told.brokers), 40)
    for number in (*head, *tail):
        each = told.brokers[number]
        table.add_row(
            each.name,
            human_bytes(each.before_bytes),
            bar(each.before_bytes, most, _BAR, marks),
            human_bytes(each.after_bytes),
            bar(each.after_bytes, most, _BAR, marks),
            f"{each.before_replicas:,} → {each.after_replicas:,}",
        )
    console.print(table)
    console.print()
