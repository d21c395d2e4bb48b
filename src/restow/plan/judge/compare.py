"""Compare two plans."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.sizes import human_bytes

if TYPE_CHECKING:
    from restow.model import Plan, TopicPartition


@frozen
class PlanComparison:
    """The similarities and differences of two plans. Pairs hold the first plan's value, then the second's."""

    moves: tuple[int, int]
    copied_bytes: tuple[int, int]
    waves: tuple[int, int]
    bound_bytes: tuple[int | None, int | None]
    same: int
    """Partitions that both plans move to the same replicas."""
    different: tuple[TopicPartition, ...]
    """Partitions that both plans move, but to different replicas."""
    only: tuple[tuple[TopicPartition, ...], tuple[TopicPartition, ...]]
    same_start: bool
    """Whether the partitions that both plans move start from the same replicas."""

    def rows(self) -> tuple[tuple[str, ...], ...]:
        """Return a table of what is counted: the name, of the first plan, of the second."""
        return (
            ("moves", *(f"{each:,}" for each in self.moves)),
            ("to copy", *map(human_bytes, self.copied_bytes)),
            ("at least", *("–" if each is None else human_bytes(each) for each in self.bound_bytes)),
            ("waves", *(f"{each:,}" for each in self.waves)),
            ("only here", *(f"{len(each):,}" for each in self.only)),
        )


def compare(first: Plan, second: Plan) -> PlanComparison:
    """Return the comparison of two plans."""
    one = {move.partition: move for move in first.moves}
    two = {move.partition: move for move in second.moves}
    both = sorted(one.keys() & two.keys())
    different = [
        each
        for each in both
        if one[each].after != two[each].after or one[each].log_dirs != two[each].log_dirs
    ]
    return PlanComparison(
        moves=(len(one), len(two)),
        copied_bytes=(first.bytes_to_copy, second.bytes_to_copy),
        waves=(len(first.waves), len(second.waves)),
        bound_bytes=(first.bound_bytes, second.bound_bytes),
        same=len(both) - len(different),
        different=tuple(different),
        only=(tuple(sorted(one.keys() - two.keys())), tuple(sorted(two.keys() - one.keys()))),
        same_start=all(one[each].before == two[each].before for each in both),
    )
