"""Runs in processes of their own: their results come in order, and none is lost in silence."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from itertools import islice

import pytest

from restow.sim.spread import RunLost, spread


def test_results_come_in_the_order_of_the_tasks_although_a_later_one_ends_first() -> None:
    wait, tell = os.pipe()

    def work(number: int) -> tuple[int, int]:
        if number == 0:
            os.read(wait, 1)
        if number == 3:
            os.write(tell, b"x")
        return number, os.getpid()

    found = [each for each in spread(work, range(5), processes=2, look_every_s=60) if each is not None]
    assert [number for number, _ in found] == [0, 1, 2, 3, 4]
    assert len({os.getpid(), *(process for _, process in found)}) == 6


def test_process_that_dies_is_an_error() -> None:
    def work(number: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(RunLost, match="code -9"):
        list(spread(work, range(1), processes=1, look_every_s=60))


def test_end_of_the_iteration_ends_the_processes() -> None:
    alive, held = os.pipe()

    def work(number: int) -> int:
        if number:
            signal.pause()
        return number

    with closing(spread(work, range(3), processes=3, look_every_s=60)) as results:
        assert list(islice((each for each in results if each is not None), 1)) == [0]
    os.close(held)
    assert os.read(alive, 1) == b""  # nobody else has the other end any more
