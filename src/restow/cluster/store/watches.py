"""Watches of sessions on the nodes of the embedded store."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, TypeAlias

from restow.cluster.store.protocol import NodeChange

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.store.protocol import Watch, WatchEvent

_Watcher: TypeAlias = "tuple[int, Watch]"
_ByPath: TypeAlias = "dict[str, dict[_Watcher, None]]"

Call: TypeAlias = "tuple[Watch, WatchEvent]"


class Watches:
    """One-shot watches by path. Adding the same callback to a node again has no effect."""

    def __init__(self) -> None:
        self._data: _ByPath = defaultdict(dict)
        self._children: _ByPath = defaultdict(dict)

    def add_data(self, path: str, session_id: int, watch: Watch) -> None:
        """Watch for creation, data change and deletion."""
        self._data[path][session_id, watch] = None

    def add_children(self, path: str, session_id: int, watch: Watch) -> None:
        """Watch for changes of the children, and deletion."""
        self._children[path][session_id, watch] = None

    def take(self, events: Iterable[WatchEvent]) -> list[Call]:
        """Remove and return the callbacks that the events trigger."""
        calls: list[Call] = []
        for event in events:
            fired: dict[_Watcher, None] = {}
            if event.change is not NodeChange.CHILDREN:
                fired |= self._data.pop(event.path, {})
            if event.change in {NodeChange.CHILDREN, NodeChange.DELETED}:
                fired |= self._children.pop(event.path, {})
            calls += ((watch, event) for _, watch in fired)
        return calls

    def forget(self, session_id: int) -> None:
        """Drop all watches of an ended session."""
        for by_path in (self._data, self._children):
            for path in list(by_path):
                for watcher in [each for each in by_path[path] if each[0] == session_id]:
                    del by_path[path][watcher]
                if not by_path[path]:
                    del by_path[path]
