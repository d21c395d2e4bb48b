"""The loop of a process: uvloop if available, otherwise asyncio's own."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING

import pytest
import uvloop

from restow.runtime.loop import LoopThread, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE_S = 300


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


@pytest.fixture
def nothing_frozen() -> Iterator[None]:
    """Tests run with everything frozen that was loaded before (conftest.py)."""
    gc.unfreeze()
    yield
    gc.freeze()


def test_run_restores_the_garbage_collector(nothing_frozen: None) -> None:
    before = gc.get_threshold()
    frozen, threshold = run(_collector())
    assert frozen
    assert threshold > before
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before


def test_run_leaves_objects_frozen_that_its_caller_froze(nothing_frozen: None) -> None:
    gc.freeze()
    run(_collector())
    assert gc.get_freeze_count() > 0


@pytest.fixture
def loop_thread() -> Iterator[LoopThread]:
    thread = LoopThread("of-a-test")
    yield thread
    thread.close()


def test_closing_a_loop_thread_wakes_up_other_threads_that_wait(loop_thread: LoopThread) -> None:
    begun = threading.Event()
    raised: SimpleQueue[str] = SimpleQueue()

    async def for_ever() -> None:
        begun.set()
        await asyncio.Event().wait()

    def wait() -> None:
        try:
            loop_thread.run(for_ever())
        except RuntimeError as error:
            raised.put(str(error))

    threading.Thread(target=wait, daemon=True).start()
    assert begun.wait(PATIENCE_S)
    loop_thread.close()
    assert "closed" in raised.get(timeout=PATIENCE_S)


def test_closed_loop_thread_refuses_work(loop_thread: LoopThread) -> None:
    loop_thread.close()
    with pytest.raises(RuntimeError, match="closed"):
        loop_thread.run(asyncio.sleep(0))


def test_loop_thread_raises_what_a_call_raises_and_cancels_the_work(loop_thread: LoopThread) -> None:
    calls: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
    ended = threading.Event()

    async def call_and_wait() -> None:
        try:
            calls.put(lambda: 1 // 0)
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(ZeroDivisionError):
        loop_thread.run(call_and_wait(), calls)
    assert ended.is_set()
    assert loop_thread.run(asyncio.sleep(0, "goes on")) == "goes on"
