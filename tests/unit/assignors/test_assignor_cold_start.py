"""The imports of a first small assignment: only what it needs."""

from __future__ import annotations

import subprocess
import sys

import pytest

FIRST = """
import importlib.metadata, sys

def scanned(**_):
    raise AssertionError("looked through all installed packages")

importlib.metadata.entry_points = scanned
from restow.assignors import Member, TopicPartition, assign, get
get({name!r})
owned = (TopicPartition("t", 0),)
members = [Member(id="a", topics=("t",), owned=owned, generation=1), Member(id="b", topics=("t", "u"))]
answer = assign({name!r}, {{"t": 3, "u": 2}}, members)
assert sum(map(len, answer.values())) == 5, answer
print(*sys.modules)
"""
NEVER = {"rich", "typer", "click", "yaml", "kafka", "aiokafka", "numba", "pyspark", "asyncio", "restow.cli"}


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky", "cooperative-sticky", "uniform"])
def test_first_assignment_imports_only_what_it_needs(name: str) -> None:
    code = FIRST.format(name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "restow.assignors.sticky" in loaded
    assert loaded.isdisjoint(NEVER)


def test_import_does_not_read_the_metadata_of_packages() -> None:
    code = (
        "import sys, numpy; old = set(sys.modules); import restow.assignors; print(*set(sys.modules) - old)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "restow.assignors" in loaded
    assert not {module for module in loaded if module.startswith("importlib.metadata")}
