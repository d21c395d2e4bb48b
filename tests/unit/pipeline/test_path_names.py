"""Names from clusters as parts of paths: none leaves its folder, and no two are equal."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restow.errors import InvalidInput
from restow.pipeline.names import file_name, partition_value, value_of

HOSTILE = [
    "../../../ESCAPED",
    "..",
    ".",
    "/etc/passwd",
    ".hidden",
    "_hidden",
    "a/b",
    "a_b",
    "a%2Fb",
    "day=1/cluster=x",
    "two\nlines",
    "esc\x1b[2J",
    "sp ace",
    "ümläut",
    "*?[x]{y}^\\",
    "C:\\x",
    "~home",
    "x" * 300,
    "x" * 299 + "y",
    "ü" * 200,
    "",
    "%",
    "nul\0",
]


def test_file_names_of_hostile_names_are_all_different() -> None:
    names = [file_name(each) for each in HOSTILE]
    assert len(set(names)) == len(HOSTILE)
    assert len({name.casefold() for name in names}) == len(HOSTILE)


@pytest.mark.parametrize("name", HOSTILE)
def test_file_name_is_one_visible_part_of_a_path(name: str) -> None:
    found = file_name(name)
    assert PurePosixPath(f"lake/{found}").parts == ("lake", found)
    assert not found.startswith((".", "_"))
    assert found.isascii()
    assert found.isprintable()
    assert len(found) <= 200


def test_file_name_leaves_ordinary_ids_as_they_are() -> None:
    for name in ("xx_QRmc8TMCsbfhhHy7MOg", "orders", "my.topic-7", "-dash"):
        assert file_name(name) == name


@given(st.text(max_size=60), st.text(max_size=60))
def test_different_names_have_different_file_names(one: str, two: str) -> None:
    assert (file_name(one) == file_name(two)) == (one == two)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=20))
def test_partition_value_comes_back_as_the_name(name: str) -> None:
    escaped = partition_value(name)
    assert value_of(escaped) == name
    assert PurePosixPath(f"lake/cluster={escaped}").parts == ("lake", f"cluster={escaped}")


@pytest.mark.parametrize(
    "name", ["", "__HIVE_DEFAULT_PARTITION__", "x._COPYING_", "nul\0", "x" * 300, "ü" * 150, "\udcff"]
)
def test_partition_value_refuses_names_that_no_reader_would_find(name: str) -> None:
    with pytest.raises(InvalidInput, match="cannot have a folder"):
        partition_value(name)
