"""The loop of a process: uvloop if available, otherwise asyncio's own."""

from __future__ import annotations

import asyncio
import gc
import sys

import pytest
import uvloop

from restow.runtime.loop import run


async def _kind() -> type:
    return type(asyncio.get_running_loop())


def test_run_uses_uvloop_if_available() -> None:
    assert run(_kind()) is uvloop.Loop


def test_run_uses_asyncio_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert issubclass(run(_kind()), asyncio.BaseEventLoop)


def test_run_raises_the_exception_of_main() -> None:
    async def fail() -> None:
        raise LookupError("as it was")

    with pytest.raises(LookupError, match="as it was"):
        run(fail())


async def _collector() -> tuple[bool, tuple[int, int, int]]:
    return gc.get_freeze_count() > 0, gc.get_threshold()


def test_run_restores_the_garbage_collector() -> None:
    gc.unfreeze()  # a planning command of another test may have left objects frozen in this process
    before = gc.get_threshold()
    frozen, threshold = run(_collector())
    assert frozen
    assert threshold > before
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before


def test_run_leaves_objects_frozen_that_its_caller_froze() -> None:
    gc.freeze()
    try:
        run(_collector())
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
