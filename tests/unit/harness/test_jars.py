"""The cache of jars: what is fetched, when, and what a failed fetch leaves behind.

A stand-in for `java` plays Ivy, so nothing is downloaded.
"""

from __future__ import annotations

import multiprocessing
import os
from pathlib import Path

import pytest

from harness.jars import kafka_jars, spark_kafka_jars
from harness.java import HarnessError, java
from restow.pipeline.jars import JARS, KAFKA, cache_dir, spark_release

CONNECTOR = "-".join(JARS[KAFKA][spark_release()][0].split(":")[1:])

FAKE_JAVA = """\
#!/bin/sh
if [ "$1" = -version ]; then echo 'openjdk version "{version}" 2025-04-15' >&2; exit 0; fi
echo run >> "$RESTOW_CACHE/runs"
while [ "$1" != -ivy ]; do shift; done
cat "$2" >> "$RESTOW_CACHE/asked"
for last; do :; done
lib=$(dirname "$last")
sleep 0.1
{body}
"""
WHOLE = 'mkdir -p "$lib" && touch "$lib/kafka-clients-3.9.1.jar" "$lib/kafka_2.13-3.9.1.jar"'
UNREACHABLE = (
    'mkdir -p "$lib" && touch "$lib/kafka-clients-3.9.1.jar"; echo ":: UNRESOLVED DEPENDENCIES"; exit 1'
)


def fake_java(
    folder: Path, monkeypatch: pytest.MonkeyPatch, body: str = WHOLE, version: str = "17.0.2"
) -> None:
    program = folder / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_JAVA.format(version=version, body=body))
    program.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(folder / "jdk"))
    monkeypatch.setenv("RESTOW_CACHE", str(folder / "cache"))


def test_cache_dir_is_the_first_variable_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RESTOW_CACHE", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_dir() == Path("/own")
    monkeypatch.delenv("RESTOW_CACHE")
    assert cache_dir() == Path("/shared/restow")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_dir() == Path("/home/someone/.cache/restow")


def test_jars_are_fetched_once_and_announced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_java(tmp_path, monkeypatch)
    first, second = kafka_jars(), kafka_jars()
    assert first == second == tmp_path / "cache" / "apache-kafka-3.9.1"
    assert sorted(jar.name for jar in first.iterdir()) == ["kafka-clients-3.9.1.jar", "kafka_2.13-3.9.1.jar"]
    assert (tmp_path / "cache" / "runs").read_text() == "run\n"
    assert capsys.readouterr().err.startswith("fetching Apache Kafka 3.9.1's jars (56 MB) once into")


def test_each_version_and_the_connector_have_their_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, monkeypatch)
    cache = tmp_path / "cache"
    assert kafka_jars("3.9.1") == cache / "apache-kafka-3.9.1"
    assert "slf4j" not in (cache / "asked").read_text()
    assert kafka_jars("4.3.1") == cache / "apache-kafka-4.3.1"
    assert 'name="log4j-slf4j-impl"' in (cache / "asked").read_text()
    fetched = spark_kafka_jars()
    assert {jar.parent for jar in fetched} == {cache / f"{CONNECTOR}-only"}
    name, _, release = CONNECTOR.rpartition("-")
    assert f'name="{name}" rev="{release}"' in (cache / "asked").read_text()


def test_failed_fetch_explains_itself_and_leaves_no_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, monkeypatch, UNREACHABLE)
    with pytest.raises(HarnessError, match=r"(?s)Ivy ended with 1.*Maven Central.*UNRESOLVED DEPENDENCIES"):
        kafka_jars()
    left = {path.name for path in (tmp_path / "cache").iterdir()}
    assert left <= {"runs", "asked", "ivy", "fetching.lock"}


def test_partial_folder_of_a_killed_fetch_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_java(tmp_path, monkeypatch)
    partial = tmp_path / "cache" / "apache-kafka-3.9.1.partial-x" / "lib"
    partial.mkdir(parents=True)
    (partial / "kafka-clients-3.9.1.jar").touch()
    assert (kafka_jars() / "kafka_2.13-3.9.1.jar").exists()


def test_only_one_of_two_concurrent_callers_fetches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, monkeypatch)
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        found = pool.map(kafka_jars, ["3.9.1", "3.9.1"], chunksize=1)
        pool.close()
        pool.join()
    assert found == [tmp_path / "cache" / "apache-kafka-3.9.1"] * 2
    assert (tmp_path / "cache" / "runs").read_text() == "run\n"


@pytest.mark.parametrize("version", ["", "latest", "../3.9.1", "3.9.1/.."])
def test_invalid_version_is_refused(version: str) -> None:
    with pytest.raises(ValueError, match="is not a version of Apache Kafka"):
        kafka_jars(version)


@pytest.mark.parametrize(("version", "said"), [("11.0.2", "is Java 11"), ("1.8.0_392", "is Java 8")])
def test_old_java_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, said: str
) -> None:
    fake_java(tmp_path, monkeypatch, version=version)
    with pytest.raises(HarnessError, match=f"{said}: install Java 17"):
        java()


def test_java_home_without_java_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(HarnessError, match=f"JAVA_HOME is {tmp_path}, which has no bin/java"):
        java()


def test_missing_java_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path)]))
    with pytest.raises(HarnessError, match="no java on the PATH"):
        java()
