"""The archive of classes for Spark's JVM: who records it, and what becomes of it."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

from restow.pipeline.class_archive import ClassArchive


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RESTOW_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


def record(archive: ClassArchive) -> Path:
    """Do what Java does when its JVM ends, the second time, and return the file."""
    assert archive.option(record=True) == ""
    (option,) = shlex.split(archive.option(record=True))
    flag, path = option.split("=", 1)
    assert flag == "-XX:ArchiveClassesAtExit"
    Path(path).write_bytes(b"classes")
    return Path(path)


def test_second_session_records_the_archive_for_the_third(cache: Path) -> None:
    first = ClassArchive(sys.executable)
    assert first.option(record=False) == ""
    record(first)
    assert not list(cache.glob("classes/*.jsa"))
    first.recorded(whole=True)
    (kept,) = cache.glob("classes/*")
    second = ClassArchive(sys.executable)
    assert shlex.split(second.option(record=True)) == [f"-XX:SharedArchiveFile={kept}"]
    second.recorded(whole=True)
    assert kept.read_bytes() == b"classes"


def test_archive_of_a_killed_process_is_thrown_away(cache: Path) -> None:
    archive = ClassArchive(sys.executable)
    record(archive)
    archive.recorded(whole=False)
    assert [each.suffix for each in cache.glob("classes/*")] == [".first"]
    assert ClassArchive(sys.executable).option(record=False) == ""


def test_another_java_has_another_archive(tmp_path: Path) -> None:
    archive = ClassArchive(sys.executable)
    record(archive)
    archive.recorded(whole=True)
    java = tmp_path / "java"
    java.touch()
    assert ClassArchive(str(java)).option(record=False) == ""


def test_no_archive_where_the_cache_cannot_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RESTOW_CACHE", str(tmp_path / "file"))
    archive = ClassArchive(sys.executable)
    assert archive.option(record=True) == ""
    archive.recorded(whole=True)
