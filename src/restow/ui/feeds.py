"""Live updates: the parts of a page that have changed, sent to everybody who looks at it.

A part is rendered once for all viewers of a page. A viewer that reads slowly misses versions in between,
and the server keeps nothing for it but its turn.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

MOST_VIEWERS = 500
_STILL_HERE_S = 15.0
_STILL_HERE = b": still here\n\n"


class TooManyViewers(RestowError):
    """So many pages are open that another one would slow them all down."""


class Feed:
    """The live parts of one page. A viewer gets the parts that have changed since it got some last."""

    def __init__(self, render: Callable[[], Mapping[str, str]]) -> None:
        self._render = render
        self._version = 0
        self._rendered = -1
        self._parts: dict[str, tuple[int, str]] = {}
        """Each part as it is, with the version that changed it."""
        self._texts: dict[int, bytes] = {}
        """The events of this version, by the version that their viewers have."""
        self._changed = asyncio.Event()
        self._has_ended = False
        self.viewers = 0

    def change(self) -> None:
        """Tell all viewers that there is something new."""
        self._version += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def end(self) -> None:
        """Send nothing more."""
        self._has_ended = True
        self.change()

    async def events(self) -> AsyncIterator[bytes]:
        """Yield all parts at once, and after each change those that are different, as server-sent events.

        Something is sent now and then even if nothing differs, so that a viewer who is gone is noticed.
        """
        seen, loop = -1, asyncio.get_running_loop()
        quiet_until_s = loop.time() + _STILL_HERE_S
        while not self._has_ended:
            changed = self._changed
            if seen != self._version:
                text = self._event(seen)
                seen = self._version
                if text:
                    yield text
                    quiet_until_s = loop.time() + _STILL_HERE_S
                continue
            try:
                await asyncio.wait_for(changed.wait(), max(0.0, quiet_until_s - loop.time()))
            except TimeoutError:
                yield _STILL_HERE
                quiet_until_s = loop.time() + _STILL_HERE_S

    def _event(self, seen: int) -> bytes:
        """Return what a viewer of a version needs for the present one; nothing if all is the same."""
        if self._rendered != self._version:
            self._rendered, self._texts = self._version, {}
            gone = dict.fromkeys(self._parts, "")
            for name, html in (gone | dict(self._render())).items():
                if name not in self._parts or self._parts[name][1] != html:
                    self._parts[name] = (self._version, html)
        if seen not in self._texts:
            parts = {name: html for name, (version, html) in self._parts.items() if version > seen}
            text = f"event: parts\ndata: {json.dumps({'parts': parts})}\n\n".encode() if parts else b""
            self._texts[seen] = text
        return self._texts[seen]


class Feeds:
    """The feeds that somebody looks at, by the address of their page."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}

    @property
    def viewers(self) -> int:
        return sum(feed.viewers for feed in self._feeds.values())

    def check_room(self) -> None:
        """Refuse one more viewer if there are too many."""
        if self.viewers >= MOST_VIEWERS:
            raise TooManyViewers(f"{MOST_VIEWERS} pages are open already: close some, then reload this one")

    async def events(
        self, page: str, render: Callable[[], Mapping[str, str]], may_see: Callable[[], bool] = lambda: True
    ) -> AsyncIterator[bytes]:
        """Yield the events of a page to one viewer, as long as it may see them.

        The feed is gone when its last viewer leaves.
        """
        feed = self._feeds.setdefault(page, Feed(render))
        feed.viewers += 1
        try:
            async for event in feed.events():
                if not may_see():
                    return
                yield event
        finally:
            feed.viewers -= 1
            if feed.viewers == 0 and self._feeds.get(page) is feed:
                del self._feeds[page]

    def change(self, kind: str) -> None:
        """Tell the viewers of all pages of a kind, which is the first part of their address."""
        for page, feed in self._feeds.items():
            if page.partition("?")[0] == kind:
                feed.change()

    def end(self) -> None:
        """Send nothing more to anybody."""
        for feed in self._feeds.values():
            feed.end()
