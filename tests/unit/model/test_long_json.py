"""Long documents in pieces: values and errors are the same as for the whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.model import long_json
from restow.model.long_json import read

if TYPE_CHECKING:
    from restow.model.long_json import Pieces

HEAD = '{"a": 1,\n"items": ['
LINES = '\n{"n": 1},\n{"n": 2, "more": [1,\n{"n": 0}]},\n{"n": "]}"}'


def made(document: Any, pieces: Pieces) -> tuple[object, list[object], int]:
    """Return everything but the list, the list, and the number of its pieces."""
    rest = {name: value for name, value in document.items() if name != "items"}
    found = [*pieces]
    return rest, [item for piece in found for item in piece], len(found)


@pytest.fixture(autouse=True)
def _short_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_json, "_CHARACTERS", 1)


_VALUES = st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.none()


@given(st.lists(st.dictionaries(st.text(), _VALUES), min_size=2))
def test_read_passes_every_item_once_and_in_order(others: list[dict[str, object]]) -> None:
    items = [{"n": number, **other} for number, other in enumerate(others)]
    text = HEAD + "\n" + ",\n".join(map(json.dumps, items)) + "]}\n"
    found = json.loads(text)
    rest, back, pieces = made(*_cut(text))
    assert (rest, back) == ({"a": 1}, found["items"])
    assert pieces == len(items)
    assert read(text, "items", "n", made) == (rest, back, pieces)


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e400", '"\\ud800"'])
def test_read_accepts_what_only_the_standard_library_accepts(number: str) -> None:
    rest, items, pieces = read(f'{HEAD}\n{{"n": 1}},\n{{"n": {number}}}]}}\n', "items", "n", made)
    assert (rest, pieces) == ({"a": 1}, 1)
    assert repr(items) == repr([{"n": 1}, {"n": json.loads(number)}])


def _cut(text: str) -> tuple[Any, Pieces]:
    cut = long_json._cut(text, "items", "n")
    assert cut is not None
    return cut


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{LINES}]}}\n",
        f"{HEAD}{LINES}]}}",
        f'{HEAD}{LINES}], "b": [2]}}\n',
        f'{HEAD}{LINES}],\n"items": [\n{{"n": 5}}]}}\n',
        f'{{"b": {{"items": [\n{{"n": 5}}]}},\n"items": [{LINES}]}}\n',
        f"{HEAD}\n]}}\n",
        f"{HEAD}]}}\n",
        '{"items": [1,\n{"n": 2}]}\n',
    ],
)
def test_read_accepts_any_layout(text: str) -> None:
    found = json.loads(text)
    assert read(text, "items", "n", made)[:2] == (
        {name: value for name, value in found.items() if name != "items"},
        found["items"],
    )


@pytest.mark.parametrize(
    "items",
    ['\n{"n": 1},\n{"n": 2', '\n{"n": 1},,\n{"n": 2}', '\n,\n{"n": 2}', '\n{"n": 1},', '\n{"n": "\n"}'],
)
def test_read_reports_invalid_json_of_the_whole_document(items: str) -> None:
    text = f"{HEAD}{items}]}}\n"
    with pytest.raises(json.JSONDecodeError) as whole:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as pieces:
        read(text, "items", "n", made)
    assert str(pieces.value) == str(whole.value)


def test_read_accepts_a_document_without_the_list() -> None:
    with pytest.raises(KeyError, match="items"):
        read("{}", "items", "n", made)
