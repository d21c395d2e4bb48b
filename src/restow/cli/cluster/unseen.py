"""What a snapshot could not show, in sentences: whoever plans on it must know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.shared.drawing import clean, count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.model import Snapshot

_NAMED = 5
"""How many names a sentence has; the rest are counted."""


def unseen(snapshot: Snapshot) -> Iterator[str]:
    """Yield one sentence for each thing that is missing, and why."""
    yield from hidden(snapshot.hidden_topics)
    if snapshot.denied:
        yield f"not allowed to see everything: {_some(snapshot.denied)} would be needed"
    if snapshot.unanswered:
        yield f"no word about their disks from brokers {_some([str(each) for each in snapshot.unanswered])}"


def hidden(topics: Sequence[str]) -> Iterator[str]:
    """Say which topics are left out of everything, in one sentence or none."""
    if topics:
        yield (
            f"{count(len(topics), 'topic')} cannot be seen, because DESCRIBE on "
            f"{'it' if len(topics) == 1 else 'them'} is not allowed: {_some(topics)}"
        )


def _some(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return clean(", ".join(names[:_NAMED])) + (f" and {more:,} more" if more > 0 else "")
