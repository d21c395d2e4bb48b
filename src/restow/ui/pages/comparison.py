"""Two plans side by side: what each costs, what each leads to, and where they differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.html.page import Section, link, paragraph, section, table
from restow.html.plots import changes
from restow.sizes import human_bytes
from restow.ui.addresses import plan_address
from restow.ui.frame import Shown
from restow.ui.pages.links import ids, partition_link

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from restow.model import TopicPartition
    from restow.plan.explain.view import BrokerChange
    from restow.plan.judge.compare import PlanComparison
    from restow.ui.large_files import ShownPlan
    from restow.ui.moves import ShownMove
    from restow.ui.plan_store import StoredPlan

_ROWS, _DRAWN = 100, 60


def compare_page(
    stored: tuple[StoredPlan, StoredPlan],
    plans: tuple[ShownPlan, ShownPlan],
    found: PlanComparison,
    brokers: Sequence[Sequence[BrokerChange]],
) -> Shown:
    """Return the page."""
    return Shown(title="Two plans", body="".join(map(section, _sections(stored, plans, found, brokers))))


def _sections(
    stored: tuple[StoredPlan, StoredPlan],
    plans: tuple[ShownPlan, ShownPlan],
    found: PlanComparison,
    brokers: Sequence[Sequence[BrokerChange]],
) -> Iterator[Section]:
    rows = [
        ("made", *(link(each.id, plan_address(each.id)) for each in stored)),
        *found.rows(),
        *_goals(stored),
    ]
    told = f"{found.same:,} partitions go the same way in both, {len(found.different):,} another way."
    start = "" if found.same_start else paragraph("They do not start from the same replicas.", "bad")
    heads = ("", *(each.title for each in stored))
    yield Section(title="Both", parts=(table(heads, rows, caption="both plans"), paragraph(told), start))
    if picture := _brokers(brokers):
        yield Section(
            title="Brokers afterwards",
            note="Bytes after the first plan (grey) and after the second.",
            parts=(picture,),
        )
    first, second = (
        plan.moves.of([*found.different[:_ROWS], *only[:_ROWS]])
        for plan, only in zip(plans, found.only, strict=True)
    )
    if found.different:
        yield Section(title="Another way", parts=(_different(found.different, first, second),))
    for name, only, moves in (("first", found.only[0], first), ("second", found.only[1], second)):
        if only:
            yield Section(title=f"Only in the {name}", parts=(_only(only, moves),))


def _goals(stored: Sequence[StoredPlan]) -> Iterator[tuple[str, ...]]:
    """Yield how far brokers are from their shares after each plan, as the command said."""
    told = [{each["name"]: each for each in (plan.told() or {}).get("goals", [])} for plan in stored]
    for name in dict.fromkeys(name for goals in told for name in goals):
        yield f"{name}: share of a broker", *(_range(goals.get(name)) for goals in told)


def _range(goal: Mapping[str, Sequence[float]] | None) -> str:
    return "–" if goal is None else f"{goal['after'][1]:.2f} to {goal['after'][0]:.2f}"


def _brokers(brokers: Sequence[Sequence[BrokerChange]]) -> str:
    first, second = ({each.broker: each.after.size_bytes for each in each_plan} for each_plan in brokers)
    shared = sorted(
        first.keys() & second.keys(), key=lambda each: -abs((first[each] or 0) - (second[each] or 0))
    )
    rows = [(f"broker {each}", first[each], second[each]) for each in sorted(shared[:_DRAWN])]
    return (
        changes(rows, label="bytes of each broker after the first plan and after the second") if rows else ""
    )


def _different(
    names: Sequence[TopicPartition],
    first: Mapping[TopicPartition, ShownMove],
    second: Mapping[TopicPartition, ShownMove],
) -> str:
    rows = [
        (partition_link(each), ids(first[each].before), ids(first[each].after), ids(second[each].after))
        for each in names[:_ROWS]
    ]
    heads = ("partition", "from", "to, by the first", "to, by the second")
    return table(heads, rows, left=4, caption="partitions that go another way") + _more(names)


def _only(names: Sequence[TopicPartition], moves: Mapping[TopicPartition, ShownMove]) -> str:
    rows = [
        (
            partition_link(each),
            ids(moves[each].before),
            ids(moves[each].after),
            human_bytes(moves[each].bytes_to_copy),
        )
        for each in names[:_ROWS]
    ]
    heads = ("partition", "from", "to", "to copy")
    return table(heads, rows, left=3, caption="only in one plan") + _more(names)


def _more(names: Sequence[TopicPartition]) -> str:
    return paragraph(f"and {len(names) - _ROWS:,} more") if len(names) > _ROWS else ""
