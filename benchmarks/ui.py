"""How fast the pages are, in Chromium, on large clusters and runs: `python -m benchmarks.ui [--json]`.

    first view       1,000 brokers and 200,000 partitions: from the request until everything has loaded, the
                     median of ten; and all bytes that come over the network for it, with an empty cache
    first opening    of a plan file of 100,000 moves that the server has never read: until a page says that it
                     is being read, and until its moves are there, which the page shows by itself
    100,000 moves    the plan's page and the timeline of a run that is under way, like the first view; then
                     the page is scrolled for two seconds, and the longest frame counts
    events           from just before an entry is written until 50 viewers have it: 49 that read
                     the stream as it comes, and one Chromium, in which it has to be on the page
    memory           of the server that did all of this, at most
    restart          the plan's page again, opened once, as soon as a new server has looked at the cluster

The server runs on one core, and Chromium and the viewers on the others. The peer is the most that is allowed.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
import threading
import time
from concurrent.futures import wait
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from benchmarks.report import Row, command_line, print_each
from benchmarks.ui_site import PLAN_ID, RUN, LargeSite, large_site, served
from harness.chromium import browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.ui_site import Server

VIEWS, VIEWERS, EVENTS = 10, 50, 40
_PLAN = "plan of 100,000 moves"
_SCROLL = """() => new Promise((done) => {
  const frames = []; const began = performance.now(); let last = began;
  const step = (now) => {
    frames.push(now - last); last = now;
    window.scrollBy(0, 40);
    if (window.scrollY + window.innerHeight >= document.body.scrollHeight) window.scrollTo(0, 0);
    if (now - began < 2000) requestAnimationFrame(step); else done(Math.max(...frames.slice(2)));
  };
  requestAnimationFrame(step);
})"""
_LOADED = "() => performance.getEntriesByType('navigation')[0].loadEventEnd"


def main() -> None:
    """Measure and print."""
    as_json = bool(command_line("How fast the pages are.").parse_args().json)
    print_each("Pages in Chromium", rows(), as_json=as_json)


def rows() -> Iterator[Row]:
    """Yield what was measured."""
    with (
        tempfile.TemporaryDirectory(prefix="restow-bench-") as name,
        large_site(Path(name)) as site,
        browser() as chromium,
    ):
        with served(Path(name)) as server:
            yield from _whole_day(chromium, server, site)
        with served(Path(name)) as server:
            _, complete = _opened(chromium, server)
            yield _row(name=f"{_PLAN}, after a restart of the server", ours=complete, limit=1_000)


def _row(*, name: str, ours: float, unit: str = "ms", limit: float | None = None) -> Row:
    """Return a row whose peer is the most that is allowed, if there is such a promise."""
    if limit is None:
        return Row(name=name, ours=ours, unit=unit)
    return Row(name=name, ours=ours, unit=unit, peer=limit, peer_name="limit", target=1.0)


def _whole_day(chromium: Any, server: Server, site: LargeSite) -> Iterator[Row]:
    """Yield what one server does, from its start."""
    yield from _view(chromium, server, "first view, 1,000 brokers, 200,000 partitions", "/", most_kb=500)
    shown, complete = _opened(chromium, server)
    yield _row(name=f"{_PLAN}, first opening: something to see", ours=shown, limit=1_000)
    yield _row(name=f"{_PLAN}, first opening: its moves", ours=complete)
    page = entered(chromium, server)
    for name, where in ((_PLAN, f"/plans/{PLAN_ID}"), ("run of 100,000 moves", f"/runs/{RUN}")):
        yield from _view(chromium, server, name, where)
        page.goto(server.address + where)
        yield _row(name=f"{name}: longest frame while scrolling", ours=page.evaluate(_SCROLL), limit=50)
    page.goto(f"{server.address}/runs/{RUN}")
    seen = _events(page, server, site)
    yield _row(name=f"event to page, P95 of {EVENTS} events and {VIEWERS} viewers", ours=seen, limit=1_000)
    most, now = (server.megabytes(name) for name in ("VmHWM", "VmRSS"))
    yield _row(name=f"memory of the server for {VIEWERS} viewers, at most", ours=most, unit="MiB", limit=300)
    yield _row(name=f"memory of the server for {VIEWERS} viewers, now", ours=now, unit="MiB")


def _opened(chromium: Any, server: Server) -> tuple[float, float]:
    """Open the plan's page; return after how many milliseconds it has something to see, and has its moves."""
    page = entered(chromium, server)
    began = time.monotonic()
    page.goto(f"{server.address}/plans/{PLAN_ID}", wait_until="load")
    shown = page.evaluate(_LOADED)
    page.wait_for_selector("#moves tbody tr")
    complete = 1_000 * (time.monotonic() - began)
    page.context.close()
    return shown, complete


def entered(chromium: Any, server: Server) -> Any:
    """Return a page of somebody who has entered."""
    page = chromium.new_context().new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{server.address}/login#token={server.token}")
    page.wait_for_selector("text=brokers up")
    return page


def _view(chromium: Any, server: Server, name: str, where: str, most_kb: int | None = None) -> Iterator[Row]:
    times, sizes = [], []
    for _ in range(VIEWS):
        page = entered(chromium, server)  # a new context: nothing is cached
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.send("Network.setCacheDisabled", {"cacheDisabled": True})
        received: list[float] = []
        session.on(
            "Network.loadingFinished", lambda event, to=received: to.append(event["encodedDataLength"])
        )
        page.goto(server.address + where, wait_until="load")
        times.append(page.evaluate(_LOADED))
        sizes.append(sum(received) / 1000)
        page.context.close()
    yield _row(name=name, ours=median(times), limit=1_000)
    yield _row(name=f"{name}: over the network", ours=max(sizes), unit="kB", limit=most_kb)


def _events(page: Any, server: Server, site: LargeSite) -> float:
    """Return the 95th percentile of how long an event takes to its viewers, in milliseconds."""
    viewers = Viewers(server, VIEWERS - 1)
    viewers.start()
    took = []
    try:
        for _ in range(EVENTS):
            written = time.monotonic()
            name = str(site.move_on())
            page.wait_for_selector(f"#events td:has-text('{name}')")
            in_chromium = time.monotonic() - written
            seen = viewers.seen(name.encode())
            took += [in_chromium, *(at - written for at in seen)]
            time.sleep(0.3)
    finally:
        viewers.stop()
    took.sort()
    return 1_000 * took[math.ceil(0.95 * len(took)) - 1]


class Viewers:
    """Open streams, read in a thread of their own."""

    def __init__(self, server: Server, count: int) -> None:
        self._server, self._count = server, count
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._news: list[list[tuple[float, bytes]]] = [[] for _ in range(count)]
        self._tasks: list[Any] = []

    def start(self) -> None:
        """Open all streams; return when each has had its first event."""
        self._thread.start()
        self._tasks = [
            asyncio.run_coroutine_threadsafe(self._read(number), self._loop) for number in range(self._count)
        ]
        while not all(self._news):
            time.sleep(0.05)

    def stop(self) -> None:
        """Hang up all of them."""
        for task in self._tasks:
            task.cancel()
        wait(self._tasks)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def seen(self, words: bytes) -> list[float]:
        """Wait until every viewer has had this, and return when each had it."""
        found = []
        for news in self._news:
            while not (times := [at for at, text in list(news) if words in text]):
                time.sleep(0.01)
            found.append(times[0])
            news.clear()
        return found

    async def _read(self, number: int) -> None:
        where = urlsplit(self._server.address)
        reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=2**24)
        head = (
            f"GET /events?page=run&name={RUN}&number=1 HTTP/1.1\r\nhost: {where.netloc}\r\n"
            f"authorization: Bearer {self._server.token}\r\n\r\n"
        )
        writer.write(head.encode())
        while True:
            line = await reader.readline()
            if line.startswith(b"data: "):
                self._news[number].append((time.monotonic(), line))


if __name__ == "__main__":
    main()
