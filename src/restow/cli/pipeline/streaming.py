"""The output of `collect` and `pipeline stream`: one line per batch, and one at the end."""

from __future__ import annotations

import os
import sys
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from restow.cli.shared.drawing import clean
from restow.cli.shared.frame import show_document

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Mapping

    from restow.pipeline.stream import Stream

_LOOK_EVERY_S = 0.2


class StreamBatch(Protocol):
    """One batch as Spark reports it."""

    @property
    def rows(self) -> Mapping[str, int]: ...

    def document(self) -> dict[str, object]: ...


B = TypeVar("B", bound=StreamBatch)


def checkpoint_beside(lake: str, kind: str, *names: str) -> str:
    """Return the folder of a checkpoint: in the lake, where no reader looks, or in the state folder."""
    from restow.execute.journal.runs import state_folder
    from restow.pipeline.address import ICEBERG, lake_address
    from restow.pipeline.names import file_name

    address = lake_address(lake)
    own = "/".join(map(file_name, names))
    if address.kind == ICEBERG:
        return f"{state_folder(os.environ)}/{kind}/{file_name(address.text)}/{own}"
    return f"{address.place}/_{kind}/{own}"


class Told(Generic[B]):
    """Prints each batch as it ends, and counts batches and rows."""

    def __init__(self, lines: Callable[[B], Iterable[str]], *, as_json: bool) -> None:
        self.seen = 0
        self.rows = 0
        self._lines = lines
        self._as_json = as_json

    def tell(self, batch: B) -> None:
        self.seen += 1
        self.rows += sum(batch.rows.values())
        if self._as_json:
            show_document(batch.document())
        else:
            say(*self._lines(batch))


def run_until_told(
    stream: Stream,
    batches: SimpleQueue[B],
    told: threading.Event,
    lines: Callable[[B], Iterable[str]],
    *,
    as_json: bool,
) -> tuple[int, int]:
    """Print batches until the stream ends or a signal stops it; return the numbers of batches and rows."""
    out = Told(lines, as_json=as_json)
    with stream:
        while not told.is_set() and not stream.ended:
            try:
                out.tell(batches.get(timeout=_LOOK_EVERY_S))
            except Empty:
                continue
    while not batches.empty():
        out.tell(batches.get())
    return out.seen, out.rows


def say(*lines: str) -> None:
    """Print the line and flush: a script may wait for it."""
    sys.stdout.write("".join(f"{clean(line)}\n" for line in lines))
    sys.stdout.flush()
