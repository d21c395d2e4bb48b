"""Regular expressions for topics, in time proportional to the name: none takes for ever.

Kafka's brokers use RE2, which has no backreferences and no lookaround, and so never has to try again.
Python's own `re` may take exponential time, and one client could stop a broker with it. So an expression is
compiled to a small machine here, whose possible states are followed all at once.

Known: literals, `.`, classes with ranges and `\\d \\w \\s \\D \\W \\S`, `(…)`, `(?:…)`, `(?P<name>…)`, `(?i)`
at the start, `|`, `* + ? {m,n}` with `?` behind them, `^ $ \\A \\z`, and `\\Q…\\E`. All else is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from restow.errors import RestowError

if TYPE_CHECKING:
    from collections.abc import Callable

_MOST_STATES = 10_000
_MOST_REPEATS = 1_000
_DEEPEST = 100
_CLASSES: dict[str, Callable[[str], bool]] = {
    "d": lambda c: "0" <= c <= "9",
    "w": lambda c: c.isascii() and (c.isalnum() or c == "_"),
    "s": lambda c: c in " \t\n\f\r",
}
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
_META = frozenset("\\.+*?()|[]{}^$-/ ")


class InvalidPattern(RestowError):
    """A regular expression that cannot be compiled."""


@dataclass(slots=True)
class _State:
    """One state of the machine: consume a character, or go on at once."""

    accepts: Callable[[str], bool] | None = None
    after: list[int] = field(default_factory=list)
    at_start: bool = False
    at_end: bool = False


class Pattern:
    """A compiled expression."""

    def __init__(self, text: str) -> None:
        compiler = _Compiler(text)
        self._states, self._start, self._end = compiler.compile()
        self._ignores_case = compiler.ignores_case

    def matches(self, name: str) -> bool:
        """Return whether the expression matches the whole name."""
        if self._ignores_case:
            name = name.lower()
        active = self._closure({self._start}, at_start=True, at_end=not name)
        for index, character in enumerate(name):
            stepped = {
                target
                for number in active
                if (accepts := self._states[number].accepts) is not None and accepts(character)
                for target in self._states[number].after
            }
            active = self._closure(stepped, at_start=False, at_end=index == len(name) - 1)
            if not active:
                return False
        return self._end in active

    def _closure(self, numbers: set[int], *, at_start: bool, at_end: bool) -> set[int]:
        """Return all states that are reached without another character."""
        reached = set(numbers)
        waiting = list(numbers)
        while waiting:
            state = self._states[waiting.pop()]
            if (
                state.accepts is not None
                or (state.at_start and not at_start)
                or (state.at_end and not at_end)
            ):
                continue
            new = [target for target in state.after if target not in reached]
            reached.update(new)
            waiting += new
        return reached


class _Compiler:
    """Parses an expression and builds the machine; each part has a first and a last state."""

    def __init__(self, text: str) -> None:
        self.ignores_case = text.startswith("(?i)")
        self._text = text[4:] if self.ignores_case else text
        self._at = 0
        self._depth = 0
        self._states: list[_State] = []

    def compile(self) -> tuple[list[_State], int, int]:
        first, last = self._alternatives()
        if self._at < len(self._text):
            raise self._refusal("an unexpected )")
        return self._states, first, last

    def _alternatives(self) -> tuple[int, int]:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._refusal("too many nested groups")
        first, last = self._new(_State()), self._new(_State())
        while True:
            start, end = self._sequence()
            self._states[first].after.append(start)
            self._states[end].after.append(last)
            if not self._take("|"):
                break
        self._depth -= 1
        return first, last

    def _sequence(self) -> tuple[int, int]:
        first = last = self._new(_State())
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            begin = self._at
            start, end = self._atom()
            start, end = self._repeated(begin, start, end)
            self._states[last].after.append(start)
            last = end
        return first, last

    def _repeated(self, begin: int, start: int, end: int) -> tuple[int, int]:
        if self._take("*"):
            least, most = 0, -1
        elif self._take("+"):
            least, most = 1, -1
        elif self._take("?"):
            least, most = 0, 1
        elif (counts := self._counts()) is not None:
            least, most = counts
        else:
            return start, end
        self._take("?")
        if self._at < len(self._text) and (self._text[self._at] in "*+?" or self._counts() is not None):
            raise self._refusal("a repetition of a repetition")
        resume = self._at
        copies = [(start, end)]
        for _ in range(1, max(least, most, 1)):
            self._at = begin
            copies.append(self._atom())
        self._at = resume
        return self._chain([] if most == 0 else copies, least, most)

    def _chain(self, copies: list[tuple[int, int]], least: int, most: int) -> tuple[int, int]:
        """Connect copies of one part: the first `least` must match, the others may."""
        first = last = self._new(_State())
        final = self._new(_State())
        for number, (start, end) in enumerate(copies):
            if number >= least:
                self._states[last].after.append(final)
            self._states[last].after.append(start)
            if most < 0 and number == len(copies) - 1:
                self._states[end].after.append(start)
            last = end
        self._states[last].after.append(final)
        return first, final

    def _counts(self) -> tuple[int, int] | None:
        """Read {m}, {m,} or {m,n}; None, and nothing is read, if there is none."""
        if not self._text.startswith("{", self._at):
            return None
        end = self._text.find("}", self._at)
        least, comma, most = self._text[self._at + 1 : max(end, self._at)].partition(",")
        if end < 0 or not least.isascii() or not least.isdigit() or (most and not most.isdigit()):
            return None
        low, high = int(least), -1 if comma and not most else int(most or least)
        if max(low, high) > _MOST_REPEATS or (high >= 0 and high < low):
            raise self._refusal(f"a repetition {self._text[self._at : end + 1]}")
        self._at = end + 1
        return low, high

    def _atom(self) -> tuple[int, int]:
        character = self._text[self._at]
        self._at += 1
        match character:
            case "(":
                return self._group()
            case "[":
                return self._single(self._class())
            case ".":
                return self._single(lambda c: c != "\n")
            case "^":
                return self._empty(at_start=True)
            case "$":
                return self._empty(at_end=True)
            case "\\":
                return self._escape()
            case "*" | "+" | "?":
                raise self._refusal("nothing to repeat")
        return self._literal(character)

    def _group(self) -> tuple[int, int]:
        if self._take("?") and not self._take(":"):
            named = self._take("P<") or self._take("<")
            end = self._text.find(">", self._at)
            if not named or end < 0 or not self._text[self._at : end].isidentifier():
                raise self._refusal("a group of a kind that is not supported")
            self._at = end + 1
        part = self._alternatives()
        if not self._take(")"):
            raise self._refusal("a group that does not end")
        return part

    def _escape(self) -> tuple[int, int]:
        if self._at >= len(self._text):
            raise self._refusal("a \\ at the end")
        character = self._text[self._at]
        self._at += 1
        if character == "A":
            return self._empty(at_start=True)
        if character == "z":
            return self._empty(at_end=True)
        if character == "Q":
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at : None if end < 0 else end]
            self._at = len(self._text) if end < 0 else end + 2
            return self._quoted(quoted)
        if accepts := self._class_escape(character):
            return self._single(accepts)
        return self._literal(self._escaped(character))

    def _quoted(self, text: str) -> tuple[int, int]:
        first = last = self._new(_State())
        for character in text:
            start, end = self._literal(character)
            self._states[last].after.append(start)
            last = end
        return first, last

    def _class(self) -> Callable[[str], bool]:
        negated = self._take("^")
        tests: list[Callable[[str], bool]] = []
        first = True
        while first or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise self._refusal("a class that does not end")
            first = False
            low = self._text[self._at]
            self._at += 1
            if low == "[" and self._text.startswith(":", self._at):
                raise self._refusal("a named class")
            if low == "\\" and self._at < len(self._text):
                escaped = self._text[self._at]
                self._at += 1
                if accepts := self._class_escape(escaped):
                    tests.append(accepts)
                    continue
                low = self._escaped(escaped)
            tests.append(self._range(low))
        self._at += 1

        def accepts_any(character: str) -> bool:
            return any(test(character) for test in tests) is not negated

        return accepts_any

    def _range(self, low: str) -> Callable[[str], bool]:
        high = low
        rest = self._text[self._at : self._at + 2]
        if len(rest) == 2 and rest[0] == "-" and rest[1] != "]":
            self._at += 2
            high = rest[1]
            if high == "\\":
                if self._at >= len(self._text):
                    raise self._refusal("a class that does not end")
                high = self._escaped(self._text[self._at])
                self._at += 1
            if high < low:
                raise self._refusal(f"a range {low}-{high}")
        if self.ignores_case:
            return lambda c: low <= c <= high or low <= c.upper() <= high
        return lambda c: low <= c <= high

    def _class_escape(self, character: str) -> Callable[[str], bool] | None:
        if character.lower() not in _CLASSES:
            return None
        belongs = _CLASSES[character.lower()]
        return belongs if character.islower() else lambda c: not belongs(c)

    def _escaped(self, character: str) -> str:
        if character in _ESCAPES:
            return _ESCAPES[character]
        if character in _META or not (character.isascii() and character.isalnum()):
            return character
        raise self._refusal(f"an escape \\{character}")

    def _literal(self, character: str) -> tuple[int, int]:
        wanted = character.lower() if self.ignores_case else character
        return self._single(lambda c: c == wanted)

    def _single(self, accepts: Callable[[str], bool]) -> tuple[int, int]:
        last = self._new(_State())
        return self._new(_State(accepts=accepts, after=[last])), last

    def _empty(self, *, at_start: bool = False, at_end: bool = False) -> tuple[int, int]:
        last = self._new(_State())
        return self._new(_State(after=[last], at_start=at_start, at_end=at_end)), last

    def _new(self, state: _State) -> int:
        if len(self._states) >= _MOST_STATES:
            raise self._refusal("too many parts")
        self._states.append(state)
        return len(self._states) - 1

    def _take(self, text: str) -> bool:
        taken = self._text.startswith(text, self._at)
        if taken:
            self._at += len(text)
        return taken

    def _refusal(self, what: str) -> InvalidPattern:
        return InvalidPattern(f"the regular expression {self._text!r} has {what}, before position {self._at}")
