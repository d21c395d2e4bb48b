"""The loop of a process: its answer comes back, and without uvloop asyncio's own does."""

from __future__ import annotations

import asyncio
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
