"""Read hand-written JSON or YAML files, with errors that name the place.

A `DocumentNode` is a value that knows its file and its place in it, so that every error reads like
`group.yaml, members[2].topics: expected a list, found a number`.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from restow.errors import InvalidDocument

if TYPE_CHECKING:
    from collections.abc import Collection

MAX_FILE_BYTES = 256 * 1024 * 1024
STDIN = "-"


@dataclass(frozen=True, slots=True)
class DocumentNode:
    """One value in a document. The methods narrow its type or fail with file, place and expectation."""

    value: object
    source: str
    where: str = ""

    def fail(self, problem: str) -> NoReturn:
        place = f", {self.where}" if self.where else ""
        raise InvalidDocument(f"{self.source}{place}: {problem}")

    def mapping(self) -> dict[str, DocumentNode]:
        if not isinstance(self.value, dict):
            self._expected("a mapping")
        for key in self.value:
            if not isinstance(key, str):
                self.fail(f"the key {_brief(key)} is {_kind(key)}: put it in quotes")
        return {key: self._below(f".{key}", item) for key, item in self.value.items()}

    def record(self, known: Collection[str]) -> dict[str, DocumentNode]:
        """Return a mapping whose keys are all known; a null counts as absent."""
        fields = self.mapping()
        for key in fields:
            if key not in known:
                self.fail(f"unknown key {key!r}: {_suggestion(key, known)}")
        return {key: node for key, node in fields.items() if node.value is not None}

    def items(self) -> list[DocumentNode]:
        if not isinstance(self.value, list):
            self._expected("a list")
        return [self._below(f"[{index}]", item) for index, item in enumerate(self.value)]

    def text(self) -> str:
        if not isinstance(self.value, str):
            quote = ": put it in quotes" if isinstance(self.value, (bool, int, float)) else ""
            self._expected("a string", quote)
        if not self.value:
            self.fail("expected a string, found an empty one")
        return self.value

    def integer(self, minimum: int, maximum: int) -> int:
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self._expected("a whole number")
        if not minimum <= self.value <= maximum:
            self.fail(f"{_brief(self.value)} is out of range: expected {minimum:,} to {maximum:,}")
        return self.value

    def _below(self, step: str, value: object) -> DocumentNode:
        return DocumentNode(value, self.source, (self.where + step).removeprefix("."))

    def _expected(self, what: str, advice: str = "") -> NoReturn:
        self.fail(f"expected {what}, found {_kind(self.value)}{advice}")


def read_document(path: str) -> DocumentNode:
    """Read a file, or stdin for `-`. Its name decides between JSON and YAML, else its first character."""
    text = _decode(_read_bytes(path), _title(path))
    if not text.strip():
        raise InvalidDocument(f"{_title(path)} is empty: expected a JSON or YAML mapping")
    try:
        if path.endswith(".json") or (not path.endswith((".yaml", ".yml")) and text.lstrip()[0] in "{["):
            value = _load_json(text, _title(path))
        else:
            value = _load_yaml(text, _title(path))
    except RecursionError:
        raise InvalidDocument(f"{_title(path)} is nested too deeply to be read") from None
    return DocumentNode(value, _title(path))


def _title(path: str) -> str:
    return "standard input" if path == STDIN else path


def _read_bytes(path: str) -> bytes:
    if path == STDIN:
        data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
    else:
        try:
            with Path(path).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except IsADirectoryError:
            raise InvalidDocument(f"{path} is a directory: name a JSON or YAML file in it") from None
        except FileNotFoundError:
            raise InvalidDocument(
                f"{path} does not exist: check the name, or use - for standard input"
            ) from None
        except PermissionError:
            raise InvalidDocument(f"{path} may not be read: check its permissions") from None
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InvalidDocument(f"{path!r} cannot be read: {reason}") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidDocument(f"{_title(path)} is larger than {MAX_FILE_BYTES // 1024**2} MiB: split it")
    return data


def _decode(data: bytes, source: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidDocument(
            f"{source} is not UTF-8 text (byte {error.start}): expected JSON or YAML"
        ) from None
    if "\x00" in text:
        raise InvalidDocument(f"{source} is a binary file: expected JSON or YAML")
    return text


def _load_json(text: str, source: str) -> object:
    def no_twins(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            names = [key for key, _ in pairs]
            twin = next(key for key in names if names.count(key) > 1)
            raise InvalidDocument(f"{source}: the key {twin!r} is there twice: keep one")
        return found

    try:
        return json.loads(text, object_pairs_hook=no_twins)
    except json.JSONDecodeError as error:
        at = f"line {error.lineno}, column {error.colno}"
        raise InvalidDocument(f"{source}, {at}: not valid JSON: {error.msg}") from None
    except InvalidDocument:
        raise
    except ValueError as error:
        raise InvalidDocument(f"{source}: not valid JSON: {error}") from None


def _load_yaml(text: str, source: str) -> object:
    import yaml

    safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(safe):  # type: ignore[misc]
        """The safe loader, which also refuses a key that occurs twice."""

    def no_twins(loader: Any, node: yaml.MappingNode) -> dict[Any, Any]:
        loader.flatten_mapping(node)
        seen: set[tuple[str, str]] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.constructor.ConstructorError(
                        None, None, f"the key {key.value!r} is there twice: keep one", key.start_mark
                    )
                seen.add((key.tag, key.value))
        mapping: dict[Any, Any] = loader.construct_mapping(node, deep=True)
        return mapping

    Loader.add_constructor("tag:yaml.org,2002:map", no_twins)
    try:
        return yaml.load(text, Loader)  # noqa: S506  (a subclass of the safe loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise InvalidDocument(f"{source}{at}: not valid YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidDocument(f"{source}: not valid YAML: {' '.join(str(error).split())}") from None


def _kind(value: object) -> str:
    names = {bool: "true/false", int: "a number", float: "a number with a fraction", str: "a string"}
    names |= {list: "a list", dict: "a mapping", type(None): "nothing"}
    return names.get(type(value), f"a {type(value).__name__}")


def _brief(value: object) -> str:
    if isinstance(value, int) and abs(value) >= 10**15:
        return "a number of more than 15 digits"
    return repr(value)


def _suggestion(key: str, known: Collection[str]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(key.replace("-", "_"), known, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"expected one of {', '.join(sorted(known))}"
