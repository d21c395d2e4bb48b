"""The examples of docs/faults.md, run as a reader would run them."""

from __future__ import annotations

import asyncio
import inspect
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.cluster import ThreadedCluster, ThreadedFaults

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
WAIT_S = 300


def names_of(blocks: list[str]) -> dict[str, Any]:
    """Run the blocks one after the other in one namespace."""
    names: dict[str, Any] = {"__name__": "example"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)  # noqa: S102
    return names


BLOCKS = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
TESTS = [block for block in BLOCKS if "def test_" in block]
FIXTURES = [block for block in BLOCKS if "@pytest.fixture" in block]
PROGRAMS = [block for block in BLOCKS if "asyncio.run(" in block]


@pytest.fixture(scope="module")
def restow_cluster() -> Iterator[ThreadedCluster]:
    """The page's own fixture for a shared cluster."""
    make = names_of(FIXTURES)["restow_cluster"]
    yield from inspect.unwrap(make)()


def test_page_has_an_example_for_every_client() -> None:
    modules = {module for block in TESTS for module in re.findall(r"^from (\w+)", block, re.MULTILINE)}
    assert modules == {"kafka", "aiokafka", "confluent_kafka"}
    assert len(TESTS) + len(FIXTURES) + len(PROGRAMS) == len(BLOCKS)


@pytest.mark.parametrize("block", TESTS, ids=[re.findall(r"def (\w+)", block)[0] for block in TESTS])
def test_example_passes(block: str, restow_cluster: ThreadedCluster, restow_faults: ThreadedFaults) -> None:
    names = names_of([block])
    example = next(each for name, each in names.items() if name.startswith("test_"))
    result = example(restow_cluster, restow_faults)
    if inspect.iscoroutine(result):
        asyncio.run(asyncio.wait_for(result, WAIT_S))


def test_program_on_its_own_loop_runs() -> None:
    assert len(PROGRAMS) == 1
    names_of(PROGRAMS)
