"""Apache Kafka's jars, fetched once into the user's cache.

The cache folder is `$RESTOW_CACHE`, else `$XDG_CACHE_HOME/restow`, else `~/.cache/restow`:

    apache-kafka-3.9.1/       the jars; the folder exists only when all of them are there
    ivy/                      what Ivy downloaded, shared by the versions
    apache-kafka-3.9.1.lock   held while somebody fetches

The jars are gathered in a folder beside the final one, which is renamed at the very end; so a fetch
that was cut short leaves nothing that could be taken for a whole one.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.java import HarnessError, java

if TYPE_CHECKING:
    from collections.abc import Iterator

KAFKA_VERSION = "3.9.1"

_IVY_MODULE = """\
<ivy-module version="2.0">
  <info organisation="restow" module="apache-kafka"/>
  <dependencies>
    <dependency org="org.apache.kafka" name="kafka_2.13" rev="{version}" conf="default->default"/>
    <dependency org="org.apache.kafka" name="kafka-tools" rev="{version}" conf="default->default"/>
  </dependencies>
</ivy-module>
"""
_JAR_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
_LAST_LINES = 15


def cache_dir() -> Path:
    """Where downloads are kept between runs."""
    if own := os.environ.get("RESTOW_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "restow"
    return Path.home() / ".cache" / "restow"


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """The folder with all jars of that Apache Kafka, fetched first if need be."""
    if not re.fullmatch(r"\d+(\.\d+)+(-\w+)?", version):
        raise ValueError(f"{version!r} is not a version of Apache Kafka, such as {KAFKA_VERSION}")
    cache = cache_dir()
    jars = cache / f"apache-kafka-{version}"
    if jars.is_dir():
        return jars
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{jars.name}.lock"):
        if not jars.is_dir():
            _fetch(version, jars, cache / "ivy")
    return jars


def pyspark_jar(pattern: str) -> Path:
    """The one jar inside the pyspark wheel whose name fits."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise HarnessError("pyspark, whose wheel carries Ivy and py4j, is not installed: make setup")
    found = sorted((Path(spec.origin).parent / "jars").glob(pattern))
    if not found:
        raise HarnessError(f"the installed pyspark has no {pattern}: make setup installs the one that has")
    return found[-1]


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Held by one process at a time; given up by the kernel if that process dies."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(version: str, jars: Path, ivy_cache: Path) -> None:
    command = [java(), "-jar", str(pyspark_jar("ivy-2*.jar"))]
    sys.stderr.write(f"fetching Apache Kafka {version}'s jars once (about 56 MB) into {jars.parent} …\n")
    sys.stderr.flush()
    partial = Path(tempfile.mkdtemp(prefix=f"{jars.name}.partial-", dir=jars.parent))
    try:
        module = partial / "ivy.xml"
        module.write_text(_IVY_MODULE.format(version=version), encoding="utf-8")
        command[1:1] = [f"-Divy.default.ivy.user.dir={ivy_cache}"]
        command += ["-ivy", str(module), "-cache", str(ivy_cache), "-types", "jar", "bundle"]
        command += ["-retrieve", str(partial / "lib" / _JAR_PATTERN)]
        ivy = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if ivy.returncode != 0 or not list((partial / "lib").glob("kafka-clients-*.jar")):
            raise HarnessError(_explain(version, ivy))
        (partial / "lib").rename(jars)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _explain(version: str, ivy: subprocess.CompletedProcess[str]) -> str:
    last = "\n".join(f"  {line}" for line in ivy.stdout.splitlines()[-_LAST_LINES:])
    return (
        f"Apache Kafka {version}'s jars could not be fetched (Ivy ended with {ivy.returncode}). "
        f"Maven Central must be reachable the first time. Ivy's last words:\n{last}"
    )
