"""The runs of a cluster as their journals tell them, whoever began them. Only what is new is read again."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from sys import intern
from threading import Lock
from typing import TYPE_CHECKING, Any

from restow.errors import RestowError
from restow.execute.journal.journal import FILE_NAME, parse_entries
from restow.execute.journal.runs import runs_of
from restow.execute.predict.prediction import CopiedCurve, prediction_of
from restow.execute.progress.status import STATUS_FILE, read_status
from restow.execute.run.lock import holder_of
from restow.plan.files.text import partition_of
from restow.runtime.disk import SystemDisk
from restow.sizes import count, human_bytes, some
from restow.ui.large_files import run_start
from restow.ui.moves import ListedMoves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from restow.execute.journal.journal import JournalEntry
    from restow.execute.predict.prediction import Prediction
    from restow.execute.progress.status import RunStatus
    from restow.execute.run.lock import Holder
    from restow.model import TopicPartition
    from restow.ui.large_files import RunStart
    from restow.ui.moves import Moves

_SHOWN = 3
_MOST_EVENTS = 5_000
_PIECE_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BookEvent:
    """Something that happened in a run, in words."""

    at_ms: int
    text: str


@dataclass(slots=True)
class PartitionTimes:
    """When the moves of a partition were submitted first, and when the last of them arrived."""

    begun_ms: int
    ended_ms: int | None = None
    dropped: str = ""
    copied_bytes: int = 0
    """What earlier steps of the move have copied."""


@dataclass(slots=True)
class RunBook:
    """A run, as far as its journal has been read."""

    name: str
    folder: Path
    keep: Path
    """Where to keep what is shown of a large one."""
    start: RunStart | None = None
    """Its first entry: the plan, and what was predicted. None until that has been read."""
    who: str = ""
    undo_of: str | None = None
    began_ms: int = 0
    ended_ms: int | None = None
    outcome: str | None = None
    """None while it is active, or if it was killed."""
    reason: str = ""
    times: dict[TopicPartition, PartitionTimes] = field(default_factory=dict)
    arrived_bytes: list[tuple[int, int]] = field(default_factory=list)
    """Moments, and the bytes of all moves that had arrived by then."""
    arrived: int = 0
    """How many moves have arrived."""
    prediction: Prediction | None = None
    """What was predicted as it began or was resumed last; None in journals of old versions."""
    took_s: float | None = None
    """How long it took since then; None if it is not done."""
    steered: tuple[str, ...] = ()
    """What an operator changed while it ran: another run than was predicted."""
    held: str = ""
    """Why a guard paused the run meanwhile; empty if none did."""
    waited: str = ""
    """How long nothing could move meanwhile, and why; empty if something always could."""
    copied: Sequence[tuple[float, float]] = ()
    """Seconds since then, and the bytes that were copied until that moment."""
    events: list[BookEvent] = field(default_factory=list)
    last_ms: int = 0
    """When its journal's last entry was written."""
    wrong: str = ""
    """What is wrong with its journal, if it cannot be read."""
    status: RunStatus | None = None
    _read: int = 0
    _entries: int = 0
    _seen: tuple[tuple[int, int], ...] = ()
    _seen_copied: CopiedCurve = field(default_factory=CopiedCurve)
    _done_before: int = 0

    @property
    def prediction_error(self) -> float | None:
        """How much longer it took than predicted, as a share.

        None if it is not done, was not predicted, or an operator changed it meanwhile.
        """
        usual_s = inf if self.prediction is None or self.steered else self.prediction.seconds.p50
        return self.took_s / usual_s - 1 if self.took_s is not None and 0 < usual_s < inf else None

    @property
    def order(self) -> Moves:
        """The moves in the order of their first steps."""
        return ListedMoves() if self.start is None else self.start.moves

    @property
    def moves(self) -> int:
        return len(self.order)

    @property
    def bytes_to_copy(self) -> int:
        return 0 if self.start is None else self.start.bytes_to_copy

    @property
    def digest(self) -> str:
        return "" if self.start is None else self.start.digest

    @property
    def title(self) -> str:
        return "" if self.start is None else self.start.title

    def refresh(self, disk: SystemDisk) -> bool:
        """Read what has been added, and return whether there was anything."""
        marks = tuple(map(_mark, (self.folder / FILE_NAME, self.folder / STATUS_FILE)))
        if marks == self._seen:
            return False
        self._seen = marks
        if not self.wrong:
            try:
                self._read_journal()
            except (RestowError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
                self.wrong = str(error)
        self.status = read_status(disk, str(self.folder))
        if self.status is not None and self.status.predicted is not None and self.ended_ms is None:
            copied = max(0, self.status.report.done_bytes - self._done_before)
            self._seen_copied.add(self.status.predicted.elapsed_s, copied)
            self.copied = self._seen_copied.points
        return True

    def _read_journal(self) -> None:
        """Read what is new, a piece at a time. The end of the last line may still be on its way."""
        path = self.folder / FILE_NAME
        with path.open("rb") as file:
            if self._read == 0 and not self._begin(path, len(file.readline())):
                return
            file.seek(self._read)
            while lines := file.readlines(_PIECE_BYTES):
                whole = lines if lines[-1].endswith(b"\n") else lines[:-1]
                entries, sound = parse_entries(b"".join(whole), str(path), self._entries)
                self._read += sound
                self._entries += len(entries)
                for entry in entries:
                    self._take(entry)

    def _begin(self, path: Path, size: int) -> bool:
        """Read the first line, and return whether all of it was there."""
        with path.open("rb") as file:
            file.seek(max(0, size - 1))
            if not size or file.read(1) != b"\n":
                return False
        self.start = run_start(path, size, self.keep)
        self._read, self._entries = size, 1
        if self.start is not None:
            self._took(self._began(self.start), self.start.at_ms)
        return True

    def _take(self, entry: JournalEntry) -> None:
        take = _TAKES.get(entry.kind)
        if take is None:
            return
        self._took(take(self, entry.facts, entry.at_ms), entry.at_ms)

    def _took(self, words: str, at_ms: int) -> None:
        self.last_ms = at_ms
        if words and len(self.events) < _MOST_EVENTS:
            self.events.append(BookEvent(at_ms, words))

    def _began(self, start: RunStart) -> str:
        self.began_ms, self.undo_of = start.at_ms, start.facts.get("undo_of")
        self.who = _who(start.facts)
        self._predict(start.prediction)
        what = f"undoes run {self.undo_of}" if self.undo_of else "begins"
        moves = count(len(start.moves), "move")
        return f"{self.who} {what}: {moves}, {human_bytes(start.bytes_to_copy)} to copy"

    def _resumed(self, facts: Mapping[str, Any], at_ms: int) -> str:  # noqa: ARG002
        self.outcome, self.ended_ms, self.who = None, None, _who(facts)
        self._done_before = self.arrived_bytes[-1][1] if self.arrived_bytes else 0
        told = facts.get("prediction")
        self._predict(None if told is None else prediction_of(told))
        return f"{self.who} resumes it"

    def _predict(self, prediction: Prediction | None) -> None:
        self.prediction = prediction
        self.took_s, self.copied, self._seen_copied = None, (), CopiedCurve()

    def _submit(self, facts: Mapping[str, Any], at_ms: int) -> str:
        names = _named(facts["steps"])
        for name in names:
            self.times.setdefault(name, PartitionTimes(at_ms))
        self.outcome, self.ended_ms = None, None
        return f"submits {some(names, _SHOWN)}"

    def _finished(self, facts: Mapping[str, Any], at_ms: int) -> str:
        names = _named(facts["steps"])
        done = self.arrived_bytes[-1][1] if self.arrived_bytes else 0
        moves = self.order.of(names)
        for name, step in zip(names, facts["steps"], strict=True):
            times, move = self.times.setdefault(name, PartitionTimes(at_ms)), moves.get(name)
            if move is not None and tuple(step["after"]) != move.after:
                new = len({*step["after"]} - {*step["before"]}) * int(step["size_bytes"])
                times.copied_bytes += new
                done += new
                continue
            if times.ended_ms is None:
                done += max(0, move.bytes_to_copy - times.copied_bytes) if move is not None else 0
                self.arrived += 1
            times.ended_ms = at_ms
        self.arrived_bytes.append((at_ms, done))
        return f"{some(names, _SHOWN)} arrived"

    def _dropped(self, facts: Mapping[str, Any], at_ms: int) -> str:
        name = partition_of(facts["partition"])
        self.times.setdefault(name, PartitionTimes(at_ms)).dropped = str(facts["reason"])
        return f"leaves out {name}: {facts['reason']}"

    def _cancelled(self, facts: Mapping[str, Any], at_ms: int) -> str:  # noqa: ARG002
        return f"{some(map(partition_of, facts['partitions']), _SHOWN)} cancelled"

    def _found(self, facts: Mapping[str, Any], at_ms: int) -> str:  # noqa: ARG002
        return (
            f"{some(map(partition_of, facts['partitions']), _SHOWN)} had been moved by another tool already"
        )

    def _throttle(self, facts: Mapping[str, Any], at_ms: int) -> str:  # noqa: ARG002
        rates = {str(each["value"]) for each in facts["changes"] if str(each["value"] or "").isdecimal()}
        if len(rates) == 1:
            return f"sets the throttle to {human_bytes(int(rates.pop()))}/s"
        return f"changes {count(len(facts['changes']), 'throttle setting')}"

    def _ended(self, facts: Mapping[str, Any], at_ms: int) -> str:
        self.outcome, self.reason, self.ended_ms = str(facts["outcome"]), str(facts.get("reason", "")), at_ms
        took_s = facts.get("seconds") if self.outcome == "done" else None
        self.took_s = None if took_s is None else float(took_s)
        self.steered = tuple(map(str, facts.get("steered", ())))
        self.held, self.waited = str(facts.get("held", "")), str(facts.get("waited", ""))
        self.copied = [(float(at_s), float(size)) for at_s, size in facts.get("copied", ())]
        return f"ends: {self.outcome}" + (f": {self.reason}" if self.reason else "")


_TAKES: dict[str, Callable[[RunBook, Mapping[str, Any], int], str]] = {
    "resumed": RunBook._resumed,  # noqa: SLF001  (a table of its own methods)
    "submit": RunBook._submit,  # noqa: SLF001
    "finished": RunBook._finished,  # noqa: SLF001
    "dropped": RunBook._dropped,  # noqa: SLF001
    "cancelled": RunBook._cancelled,  # noqa: SLF001
    "found": RunBook._found,  # noqa: SLF001
    "throttle": RunBook._throttle,  # noqa: SLF001
    "ended": RunBook._ended,  # noqa: SLF001
}


class RunBooks:
    """All runs of a cluster. Several threads may refresh them."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._disk = SystemDisk()
        self._turn = Lock()
        self._cluster_id: str | None = None
        self._books: dict[str, RunBook] = {}
        self.holder: Holder | None = None
        """The process on this machine that carries out a run now."""
        self.wrong = ""
        """Why the journals cannot be listed."""

    @property
    def folder(self) -> Path:
        return Path(runs_of(self._disk, self.root, self._cluster_id or "").folder)

    def all(self) -> list[RunBook]:
        """Return the runs, newest first. Those that died before their first entry are left out."""
        known = [each for each in self._books.values() if each.start is not None or each.wrong]
        return sorted(known, key=lambda book: (book.began_ms, book.name), reverse=True)

    def get(self, name: str) -> RunBook | None:
        return self._books.get(name)

    def is_active(self, book: RunBook) -> bool:
        """Return whether a process on this machine carries it out now."""
        return self.holder is not None and self.holder.run == book.name

    def refresh(self, cluster_id: str) -> set[str]:
        """Read what is new, and return the names of the runs that have changed."""
        with self._turn:
            return self._refresh(cluster_id)

    def _refresh(self, cluster_id: str) -> set[str]:
        if cluster_id != self._cluster_id:
            self._cluster_id, self._books = cluster_id, {}
        runs = runs_of(self._disk, self.root, cluster_id)
        keep = Path(self.root) / "ui" / Path(runs.folder).name / "journals"
        changed = set()
        try:
            names, self.wrong = runs.names(), ""
        except RestowError as error:
            names, self.wrong = (), str(error)
        for name in names:
            book = self._books.get(name)
            if book is None:
                book = self._books[name] = RunBook(name, Path(runs.path(name)), keep / name)
            if book.refresh(self._disk):
                changed.add(name)
            if book.start is not None and book.start.cluster_id != cluster_id and not book.wrong:
                book.wrong = (
                    f"this run is of the cluster {book.start.cluster_id!r}, not of {cluster_id!r}: "
                    f"{book.folder} does not belong here"
                )
        for gone in self._books.keys() - set(names):
            del self._books[gone]
            changed.add(gone)
        before, self.holder = self.holder, holder_of(self._disk, runs.folder)
        if before != self.holder:
            changed |= {each.run for each in (before, self.holder) if each is not None}
        return changed


def _mark(path: Path) -> tuple[int, int]:
    try:
        found = path.stat()
    except OSError:
        return (0, 0)
    return found.st_size, found.st_mtime_ns


def _who(facts: Mapping[str, Any]) -> str:
    who = facts.get("who") or {}
    return f"{who.get('user', 'somebody')} on {who.get('host', 'some machine')}"


def _named(steps: Iterable[Any]) -> list[TopicPartition]:
    """Return the partitions of steps. Their topics share their names."""
    names = (partition_of(each["partition"]) for each in steps)
    return [each._replace(topic=intern(each.topic)) for each in names]
