"""The loop of a process: its answer comes back, and without uvloop asyncio's own does."""

from __future__ import annotations

import asyncio
import gc
import sys

import pytest
import uvloop

from restow.runtime.loop import run


async def _kind() -> type:
    return type(asyncio.get_running_loop())


def test_uvloop_is_taken_where_it_is() -> None:
    assert run(_kind()) is uvloop.Loop


def test_without_uvloop_it_is_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert issubclass(run(_kind()), asyncio.BaseEventLoop)


def test_what_it_raises_comes_back() -> None:
    async def fail() -> None:
        raise LookupError("as it was")

    with pytest.raises(LookupError, match="as it was"):
        run(fail())


def test_the_collector_is_left_as_it_was() -> None:
    async def settings() -> tuple[bool, tuple[int, int, int]]:
        return gc.get_freeze_count() > 0, gc.get_threshold()

    before = gc.get_freeze_count(), gc.get_threshold()
    frozen, threshold = run(settings())
    assert frozen
    assert threshold > before[1]
    assert (gc.get_freeze_count(), gc.get_threshold()) == before
