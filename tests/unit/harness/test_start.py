"""Error messages when Java starts and then fails. A stand-in plays Java."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from harness.apache import apache_kafka
from harness.java import HarnessError
from harness.jvm import kafka_jvm

if TYPE_CHECKING:
    from pathlib import Path

FAKE_JAVA = """\
#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "21" 2023-09-19' >&2; exit 0; fi
case "$*" in *"$BREAKS_AT"*) echo "no room for $BREAKS_AT" >&2; exit 1;; esac
"""


@pytest.fixture
def broken_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A Java that ends at once, and complains if $BREAKS_AT is among its arguments."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_JAVA)
    program.chmod(0o755)
    (tmp_path / "cache" / "apache-kafka-3.9.1").mkdir(parents=True)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "jdk"))
    monkeypatch.setenv("RESTOW_CACHE", str(tmp_path / "cache"))
    return monkeypatch


def test_jvm_that_ends_at_once_is_reported(broken_java: pytest.MonkeyPatch) -> None:
    broken_java.setenv("BREAKS_AT", "GatewayServer")
    with pytest.raises(HarnessError, match="did not start: no room for GatewayServer"), kafka_jvm():
        pass


def test_failed_format_is_reported(broken_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken_java.setenv("BREAKS_AT", "StorageTool")
    with (
        pytest.raises(HarnessError, match=r"(?s)could not format .*node-1.*no room for StorageTool"),
        apache_kafka(tmp_path / "kafka"),
    ):
        pass


def test_broker_that_ends_at_once_is_reported(broken_java: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken_java.setenv("BREAKS_AT", "kafka.Kafka")
    with (
        pytest.raises(HarnessError, match=r"(?s)node 1 ended as it started.*no room for kafka\.Kafka"),
        apache_kafka(tmp_path / "kafka"),
    ):
        pass
