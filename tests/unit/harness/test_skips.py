"""Only a missing download or Java may skip a test; a crash of anything started fails it."""

from __future__ import annotations

import ast
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.brokers import BrokerProcess
from harness.java import HarnessError, Missing
from harness.kcat import kcat
from tests.conftest import needs_kafka

if TYPE_CHECKING:
    from collections.abc import Callable

TESTS = Path(__file__).parents[2]
ROOT = TESTS.parent

MAY_SKIP = {
    "tests/conftest.py": 1,  # needs_kafka
    "tests/sim/test_newer_python.py": 1,  # no newer Python is installed
    "tests/tidy/test_documents.py": 1,  # not a git checkout
    "tests/unit/cli/test_cli_documents.py": 2,  # root may read everything, no /dev/zero
    "tests/unit/cli/test_cli_process.py": 1,  # no pty on Windows
    "tests/unit/runtime/test_network.py": 1,  # no uvloop on Windows
    "tests/unit/runtime/test_ports.py": 1,  # ports can be held on Linux alone
}
"""All ways to skip. A new one must say here why our own crash cannot cause it."""
MAY_BE_MISSING = {
    "harness/certificates.py",
    "harness/debian.py",
    "harness/jars.py",
    "harness/java.py",
    "harness/librdkafka.py",
    "harness/pip.py",
    "harness/spark_releases.py",
    "harness/table_formats.py",
}
"""Modules that look things up or download them."""


def outcome(work: Callable[[], object]) -> str:
    """Return the outcome of a test whose fixture does this."""
    try:
        with needs_kafka():
            work()
    except pytest.skip.Exception:
        return "skipped"
    except (pytest.fail.Exception, HarnessError, OSError):
        return "failed"
    return "passed"


def missing() -> None:
    raise Missing("there is no java on the PATH")


@pytest.mark.parametrize(("ci", "ends"), [(None, "skipped"), ("true", "failed")])
def test_missing_download_skips_a_test_except_on_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str | None, ends: str
) -> None:
    if ci is None:
        monkeypatch.delenv("CI", raising=False)
    else:
        monkeypatch.setenv("CI", ci)
    assert outcome(missing) == ends


def test_broker_crash_at_start_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With or without CI, a broker of ours whose first line raises fails its test."""
    monkeypatch.delenv("CI", raising=False)
    broker = BrokerProcess(1, "nobody:1", tmp_path, 1)
    broker._command = (sys.executable, "-c", "raise RuntimeError('its first line')")

    def start() -> None:
        broker.begin()
        broker.until_ready()

    try:
        assert outcome(start) == "failed"
    finally:
        broker.end()
    assert "its first line" in broker.log.read_text(encoding="utf-8")


def test_server_that_did_not_start_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)

    def start() -> None:
        raise HarnessError("Apache Kafka's node 1 ended as it started")

    assert outcome(start) == "failed"


def test_missing_kcat_is_reported_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    kcat.cache_clear()
    with pytest.raises(Missing, match="install kcat"):
        kcat()
    kcat.cache_clear()


def test_every_way_to_skip_is_known() -> None:
    ways = {
        f"pytest.{name}"
        for name in ("skip", "mark.skip", "mark.skipif", "importorskip", "xfail", "mark.xfail")
    }
    found: dict[str, int] = {}
    for path in sorted(TESTS.rglob("*.py")):
        uses = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)]
        count = sum(ast.unparse(node.func) in ways for node in uses)
        if count:
            found[path.relative_to(ROOT).as_posix()] = count
    assert found == MAY_SKIP


def test_missing_is_raised_only_by_lookups() -> None:
    raising = {
        path.relative_to(ROOT).as_posix()
        for folder in ("harness", "src", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        if "raise Missing(" in path.read_text("utf-8")
    }
    assert raising == MAY_BE_MISSING


def test_ci_fails_if_something_is_missing() -> None:
    """The CI script sets this itself, whatever its environment says."""
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    assert "export CI=true" in script.splitlines()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
