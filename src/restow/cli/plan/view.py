"""The output of `restow plan …`: goals before and after, moves, and goals that were not reached."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from restow.cli.plan.show_view import draw_leaves, times
from restow.cli.shared.drawing import bar, clean, glyphs, middle_out, put
from restow.cli.shared.tables import BAR, LABEL, NAME, NUMBER, Grid
from restow.plan.explain.view import view_of
from restow.plan.files.text import digest_of
from restow.sizes import count, human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.console import Console

    from restow.model import Plan
    from restow.plan.explain.amounts import Amount
    from restow.plan.explain.explain import Explanation, GoalLine
    from restow.plan.explain.note import Note

_BAR = 24
_ROWS = 40
_NAMED = 10


class View:
    """A plan, the facts that the search found, and whether the plan is refused as incomplete."""

    def __init__(self, plan: Plan, told: Explanation, dirs: Sequence[Amount], *, refused: bool) -> None:
        """Keep the parts. `dirs` are the log dirs before and after, empty if the plan names none."""
        self._plan, self._told, self._dirs, self.refused = plan, told, dirs, refused

    def document(self) -> dict[str, object]:
        """Return the document that `--json` prints."""
        plan, told = self._plan, self._told
        return {
            "title": plan.title,
            "digest": digest_of(plan),
            "complete": not plan.leaves,
            "leaves": [{"partition": str(each.partition), "why": each.why} for each in plan.leaves],
            "moves": len(plan.moves),
            "waves": len(plan.waves),
            "copied_bytes": told.copied_bytes,
            "between_brokers_bytes": told.between_brokers_bytes,
            "between_dirs_bytes": told.copied_bytes - told.between_brokers_bytes,
            "bound_bytes": told.bound_bytes,
            "bound_by": plan.bound_by,
            "ratio": told.ratio,
            "reasons": dict(told.reasons),
            "goals": [_goal_fields(goal) for goal in told.goals],
            "brokers": [{"id": int(each.name), **_amount_fields(each)} for each in told.brokers],
            "log_dirs": [{"log_dir": each.name, **_amount_fields(each)} for each in self._dirs],
            "unmet": [asdict(each) for each in told.unmet],
            "warnings": [_note_fields(note) for note in told.notes if note.warning],
            "notes": [_note_fields(note) for note in told.notes if not note.warning],
        }

    def draw(self, console: Console) -> None:
        """Draw tables and a few sentences."""
        plan, told = self._plan, self._told
        if plan.moves:
            moved = f"{count(len(plan.moves), 'partition')} in {count(len(plan.waves), 'wave')}"
            console.print(f"{plan.title}: {moved}, {_to_copy(told)}", style="bold")
        else:
            put(
                console,
                f"{plan.title}: nothing to move." if plan.leaves else "Nothing to move.",
                style="bold",
            )
        self._draw_bound(console)
        if told.copied_bytes:
            console.print(times(view_of(plan), None), style="dim")
        _draw_goals(console, told.goals)
        _draw_amounts(console, "broker", told.brokers)
        if self._dirs:
            _draw_amounts(console, "log dir", self._dirs)
        for each in told.unmet[:_NAMED]:
            console.print(each.text, style="yellow")
        if len(told.unmet) > _NAMED:
            put(console, f"and {len(told.unmet) - _NAMED:,} more out of band", style="yellow")
        for note in told.notes:
            console.print(_note_line(note), style="yellow" if note.warning else "dim")
        self._draw_left(console)

    def _draw_bound(self, console: Console) -> None:
        if self._told.ratio is None:
            return
        least, proven = human_bytes(self._told.bound_bytes or 0), self._plan.bound_by
        if self._told.unmet:  # the plan does less than was asked for, so the bound is no measure of it
            line = f"all that was asked for would take at least {least} ({proven})"
        else:
            line = f"at least {least} have to be; this is {self._told.ratio:.4f} times that ({proven})"
        console.print(line, style="dim")

    def _draw_left(self, console: Console) -> None:
        if not self._plan.leaves:
            return
        left = count(len(self._plan.leaves), "partition")
        console.print(f"The plan is incomplete: {left} cannot be done.", style="bold red")
        draw_leaves(console, self._plan)
        if self.refused:
            console.print(
                "No file was written. Remove what hinders it and plan again, or take what can be done with "
                "--partial."
            )


def _to_copy(told: Explanation) -> str:
    within = told.copied_bytes - told.between_brokers_bytes
    if not within:
        return f"{human_bytes(told.copied_bytes)} to copy"
    if not told.between_brokers_bytes:
        return f"{human_bytes(within)} to copy between log dirs"
    between = human_bytes(told.between_brokers_bytes)
    return f"{between} to copy between brokers and {human_bytes(within)} between log dirs"


def _goal_fields(goal: GoalLine) -> dict[str, object]:
    return {
        "name": goal.name,
        "band": goal.band,
        "allowed": None if goal.allowed is None else list(goal.allowed),
        "asked": goal.asked,
        "before": list(goal.before),
        "after": list(goal.after),
        "out_of_band": goal.out_of_band,
    }


def _amount_fields(amount: Amount) -> dict[str, object]:
    return {
        "bytes": [amount.before_bytes, amount.after_bytes],
        "replicas": [amount.before_replicas, amount.after_replicas],
    }


def _note_fields(note: Note) -> dict[str, object]:
    return {"text": note.text, "partitions": list(map(str, note.partitions)), "advice": note.advice}


def _note_line(note: Note) -> str:
    names = ", ".join(map(str, note.partitions[:_NAMED]))
    more = len(note.partitions) - _NAMED
    named = f": {names}" + (f" and {more:,} more (--json names all)" if more > 0 else "") if names else ""
    return clean(f"{note.text}{named}" + (f". To do: {note.advice}" if note.advice else ""))


def goal_cells(goal: GoalLine) -> tuple[str, ...]:
    """Return a row of the table of goals: allowed range, before, after, and the brokers outside."""
    outside = f"{goal.out_of_band:,}" if goal.out_of_band else "-"
    return (
        goal.name,
        "any" if goal.allowed is None else f"{goal.allowed[0]:.3f} to {goal.allowed[1]:.3f}",
        f"{goal.before[0]:.3f}",
        f"{goal.after[0]:.3f}",
        f"{goal.before[1]:.3f}",
        f"{goal.after[1]:.3f}",
        outside if goal.asked else f"{outside}, not asked" if goal.out_of_band else "not asked",
    )


GOAL_HEADS = (
    "goal",
    "allowed",
    "max/share before",
    "max/share after",
    "min/share before",
    "min/share after",
    "out of band",
)


def _draw_goals(console: Console, goals: Iterable[GoalLine]) -> None:
    table = Grid(*((name, LABEL if name == "goal" else NUMBER) for name in GOAL_HEADS))
    for goal in goals:
        table.add_row(*goal_cells(goal))
    console.print()
    console.print(table)
    console.print()


def _draw_amounts(console: Console, what: str, amounts: Sequence[Amount]) -> None:
    most = max((max(each.before_bytes or 0, each.after_bytes or 0) for each in amounts), default=0)
    marks = glyphs(console)
    first = NUMBER if what == "broker" else NAME
    table = Grid(
        (what, first), ("before", NUMBER), ("", BAR), ("after", NUMBER), ("", BAR), ("replicas", NUMBER)
    )
    head, tail = middle_out(len(amounts), _ROWS)
    for number in (*head, *tail):
        each = amounts[number]
        table.add_row(
            each.name,
            human_bytes(each.before_bytes),
            bar(each.before_bytes or 0, most, _BAR, marks),
            human_bytes(each.after_bytes),
            bar(each.after_bytes or 0, most, _BAR, marks),
            f"{each.before_replicas:,} → {each.after_replicas:,}",
        )
    console.print(table)
    console.print()
