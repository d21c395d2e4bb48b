"""Say what a snapshot or an answer leaves out because it could not be seen.

It imports no client, so a command that reads a file does not wait for one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cli.shared.drawing import clean
from restow.sizes import count, some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from restow.model import Snapshot


def unseen(snapshot: Snapshot) -> Iterator[str]:
    """Yield one sentence for each missing part, with the reason."""
    yield from hidden(snapshot.hidden_topics)
    if snapshot.denied:
        yield f"not allowed to see everything: {clean(some(snapshot.denied))} would be needed"
    if snapshot.unanswered:
        yield f"no answer about log dirs from brokers {some(snapshot.unanswered)}"


def hidden(topics: Sequence[str]) -> Iterator[str]:
    """Yield at most one sentence: the topics that every command leaves out."""
    if topics:
        yield (
            f"{count(len(topics), 'topic')} cannot be seen, because DESCRIBE on "
            f"{'it' if len(topics) == 1 else 'them'} is not allowed: {clean(some(topics))}"
        )
