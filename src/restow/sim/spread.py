"""Runs spread over the cores, each in a forked process that ends with it.

A process that ends need not free the objects of its run, which would take a sixth of the time; and a forked
one has everything that its parent has imported and compiled.
"""

from __future__ import annotations

import gc
import signal
import warnings
from multiprocessing import connection, get_context
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkProcess

T = TypeVar("T")
R = TypeVar("R")


class RunLost(RestowError):
    """The process of a run has ended without a result."""


class _Started(NamedTuple):
    number: int
    process: ForkProcess


def spread(
    work: Callable[[T], R], tasks: Sequence[T], *, processes: int, look_every_s: float
) -> Generator[R | None, None, None]:
    """Yield the results in the order of the tasks, and None when the next is not there after so long.

    Ending the iteration ends the processes. They ignore ctrl-C.
    """
    context = get_context("fork")
    running: dict[Connection, _Started] = {}
    ended: dict[int, R] = {}
    begun = yielded = 0
    gc.freeze()  # the collector of a child would otherwise touch, and so copy, all that it shares with us
    try:
        while yielded < len(tasks):
            while begun < len(tasks) and len(running) < processes:
                result, to_parent = context.Pipe(duplex=False)
                process = context.Process(target=_work, args=(work, tasks[begun], to_parent), daemon=True)
                with warnings.catch_warnings():
                    # Newer Pythons warn of other threads, whose locks might be held. A run takes none.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                to_parent.close()
                running[result] = _Started(begun, process)
                begun += 1
            for each in connection.wait(list(running), look_every_s):
                number, process = running.pop(each)  # type: ignore[call-overload]
                ended[number] = _result(each, process)
            if yielded not in ended:
                yield None
            while yielded in ended:
                yield ended.pop(yielded)
                yielded += 1
    finally:
        gc.unfreeze()
        for _, process in running.values():
            process.terminate()
        for _, process in running.values():
            process.join()


def _result(result: Any, process: ForkProcess) -> Any:
    try:
        return result.recv()
    except EOFError:
        process.join()
        code = process.exitcode
        raise RunLost(f"the process of a run ended with code {code} and without a result") from None
    finally:
        result.close()
        process.join()


def _work(work: Callable[[T], R], task: T, to_parent: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    to_parent.send(work(task))
