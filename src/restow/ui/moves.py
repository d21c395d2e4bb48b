"""The moves of plans and runs, as pages ask for them: a page, those of a topic or broker, one by name.

The moves of small plans are kept in memory. Those of large plans are in an SQLite file, of which a page reads
what it shows: a hundred thousand moves would take 50 MB, and seconds to read from a plan.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from restow.model import TopicPartition
from restow.ui.lists import Paged, page_of, paged

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from restow.model import BrokerId, Plan


class ShownMove(NamedTuple):
    """A move as pages show it."""

    partition: TopicPartition
    before: tuple[BrokerId, ...]
    after: tuple[BrokerId, ...]
    bytes_to_copy: int
    reason: str


@dataclass(frozen=True, slots=True)
class MoveFilter:
    """Which moves are wanted: those of topics whose names contain this, from or to this broker."""

    topic: str = ""
    broker: BrokerId | None = None

    def takes(self, move: ShownMove) -> bool:
        """Return whether a move is wanted."""
        has_broker = self.broker is None or self.broker in (*move.before, *move.after)
        return has_broker and self.topic.lower() in move.partition.topic.lower()


EVERY_MOVE = MoveFilter()


class Moves(Protocol):
    """Moves in the order of their first steps."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[ShownMove]: ...

    def names(self) -> Iterator[TopicPartition]:
        """Yield the partitions that move, in any order."""

    def page(self, number: int, size: int, wanted: MoveFilter = EVERY_MOVE) -> Paged[ShownMove]:
        """Return a page of those that are wanted."""

    def of(self, names: Iterable[TopicPartition]) -> Mapping[TopicPartition, ShownMove]:
        """Return the moves of these partitions, as far as there are any."""


class ListedMoves:
    """Moves in memory."""

    def __init__(self, moves: Sequence[ShownMove] = ()) -> None:
        self._moves = moves

    def __len__(self) -> int:
        return len(self._moves)

    def __iter__(self) -> Iterator[ShownMove]:
        return iter(self._moves)

    def names(self) -> Iterator[TopicPartition]:
        return iter(self._by_name)

    def page(self, number: int, size: int, wanted: MoveFilter = EVERY_MOVE) -> Paged[ShownMove]:
        return paged([each for each in self._moves if wanted.takes(each)], number, size)

    def of(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, ShownMove]:
        found = self._by_name
        return {each: found[each] for each in names if each in found}

    @cached_property
    def _by_name(self) -> dict[TopicPartition, ShownMove]:
        return {each.partition: each for each in self._moves}


class FiledMoves:
    """Moves in a file that nobody changes."""

    def __init__(self, path: Path, count: int) -> None:
        self._address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        self._count = count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[ShownMove]:
        with closing(self._open()) as file:
            yield from map(_read, file.execute(f"{_SELECT} ORDER BY at"))

    def names(self) -> Iterator[TopicPartition]:
        with closing(self._open()) as file:
            yield from map(TopicPartition._make, file.execute("SELECT topic, partition FROM moves"))

    def page(self, number: int, size: int, wanted: MoveFilter = EVERY_MOVE) -> Paged[ShownMove]:
        with closing(self._open()) as file:
            if wanted == EVERY_MOVE:
                number, pages = page_of(self._count, number, size)
                first = (number - 1) * size
                rows = file.execute(f"{_SELECT} WHERE at >= ? ORDER BY at LIMIT ?", (first, size))
                return Paged(tuple(map(_read, rows)), number, pages, self._count)
            given = _given(wanted)
            [(count,)] = file.execute(_COUNT_WANTED, given)
            number, pages = page_of(count, number, size)
            rows = file.execute(_SELECT_WANTED, (*given, size, (number - 1) * size))
            return Paged(tuple(map(_read, rows)), number, pages, count)

    def of(self, names: Iterable[TopicPartition]) -> dict[TopicPartition, ShownMove]:
        with closing(self._open()) as file:
            rows = (
                row
                for name in names
                for row in file.execute(f"{_SELECT} WHERE topic = ? AND partition = ?", name)
            )
            return {move.partition: move for move in map(_read, rows)}

    def _open(self) -> sqlite3.Connection:
        return sqlite3.connect(self._address, uri=True)


_SELECT = "SELECT topic, partition, before, after, bytes, reason FROM moves"
_WANTED = "WHERE instr(lower(topic), ?) AND (instr(before, ?) OR instr(after, ?))"
_COUNT_WANTED = f"SELECT count(*) FROM moves {_WANTED}"  # noqa: S608  (constants)
_SELECT_WANTED = f"{_SELECT} {_WANTED} ORDER BY at LIMIT ? OFFSET ?"


def _given(wanted: MoveFilter) -> tuple[str, ...]:
    broker = "" if wanted.broker is None else f",{wanted.broker},"
    return wanted.topic.lower(), broker, broker


def _read(row: tuple[Any, ...]) -> ShownMove:
    topic, partition, before, after, size, reason = row
    return ShownMove(
        TopicPartition(intern(topic), partition), _ids(before), _ids(after), size, intern(reason)
    )


def _ids(text: str) -> tuple[BrokerId, ...]:
    return tuple([int(each) for each in text.split(",")[1:-1]])


def _text(brokers: Sequence[BrokerId]) -> str:
    """Return brokers with a comma on both sides of each, so that one of them can be searched for."""
    return f",{','.join(map(str, brokers))}," if brokers else ""


def shown_moves(plan: Plan) -> Iterator[ShownMove]:
    """Yield the moves of a plan in their order. They share the ids of brokers and the texts of reasons."""
    ids: dict[BrokerId, BrokerId] = {}
    for each in plan.moves_in_order:
        yield ShownMove(
            each.partition,
            tuple([ids.setdefault(broker, broker) for broker in each.before]),
            tuple([ids.setdefault(broker, broker) for broker in each.after]),
            each.bytes_to_copy,
            intern(each.reason),
        )


def write_moves(moves: Iterable[ShownMove], path: Path) -> None:
    """Write a file of moves."""
    rows = (
        (at, *move.partition, _text(move.before), _text(move.after), move.bytes_to_copy, move.reason)
        for at, move in enumerate(moves)
    )
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode = OFF")
        file.execute("PRAGMA synchronous = OFF")
        file.execute(
            "CREATE TABLE moves (at INTEGER PRIMARY KEY, topic TEXT, partition INTEGER, before TEXT, "
            "after TEXT, bytes INTEGER, reason TEXT)"
        )
        file.executemany("INSERT INTO moves VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        file.execute("CREATE INDEX by_name ON moves (topic, partition)")
        file.commit()
