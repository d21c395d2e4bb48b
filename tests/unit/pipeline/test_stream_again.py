"""A stream restarts when Spark gave up on a slow process, and raises any other error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from restow.pipeline.stream import Stream, StreamFailed

if TYPE_CHECKING:
    from pathlib import Path

SLOW = """[STREAM_FAILED] Query terminated with exception: Python worker failed to connect back.
=== Streaming Query ===
Thread State: RUNNABLE"""


class Query:
    """A query that has ended."""

    isActive = False  # noqa: N815  (Spark's name)

    def __init__(self, failure: str | None) -> None:
        self._failure = failure

    def exception(self) -> Exception | None:
        return None if self._failure is None else Exception(self._failure)

    def stop(self) -> None:
        """Do nothing: the query has ended."""


class Frame:
    """Starts queries that end in the given ways, one after the other."""

    def __init__(self, *failures: str | None) -> None:
        self.left = list(failures)
        self.writeStream = self
        self.sparkSession = object()

    def foreachBatch(self, _: object) -> Frame:  # noqa: N802  (Spark's name)
        return self

    option = trigger = lambda self, *_, **__: self

    def start(self) -> Query:
        return Query(self.left.pop(0))


def stream(frame: Any, folder: Path) -> Stream:
    return Stream(frame, lambda *_: None, name="collecting", checkpoint=str(folder / "c"), trigger={})


def test_stream_restarts_after_a_process_was_too_slow(tmp_path: Path) -> None:
    frame = Frame(SLOW, SLOW, None)
    with stream(frame, tmp_path) as running:
        assert [running.ended, running.ended, running.ended] == [False, False, True]
    assert frame.left == []


def test_stream_gives_up_after_several_restarts(tmp_path: Path) -> None:
    with (
        stream(Frame(*[SLOW] * 20), tmp_path) as running,
        pytest.raises(StreamFailed, match=r"connect back\.$"),
    ):
        any(running.ended for _ in range(20))


def test_stream_raises_other_errors_at_once(tmp_path: Path) -> None:
    frame = Frame("ValueError: no such thing\n=== Streaming Query ===\nThread State: RUNNABLE", None)
    with stream(frame, tmp_path) as running, pytest.raises(StreamFailed, match="no such thing"):
        _ = running.ended
    assert len(frame.left) == 1
