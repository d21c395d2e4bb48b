"""The jars of Apache Kafka and of Spark's connector to it, fetched once into the user's cache.

The cache folder is `$RESTOW_CACHE`, else `$XDG_CACHE_HOME/restow`, else `~/.cache/restow`:

    apache-kafka-3.9.1/       the jars; the folder exists only when all of them are there
    apache-kafka-4.3.1/
    spark-kafka-4.0.0/
    ivy/                      what Ivy downloaded, shared by all of them
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
    from collections.abc import Iterator, Sequence

KAFKA_VERSION = "3.9.1"
"""The last version with a ZooKeeper mode, and the one that is asked how things should be."""
KAFKA_4 = "4.3.1"
"""Today's version: KRaft only."""
SPARK_KAFKA = "4.0.0"
"""The connector that works with the pyspark in use."""

_KAFKA_MODULES = ("org.apache.kafka:kafka_2.13", "org.apache.kafka:kafka-tools")
# From version 4 on Kafka logs with log4j 2, but only its distribution brings the binding.
_LOGGING_OF_4 = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
# Hadoop is in the pyspark wheel already, where Spark finds it.
_IVY_MODULE = """\
<ivy-module version="2.0">
  <info organisation="restow" module="{name}"/>
  <dependencies>
{dependencies}
    <exclude org="org.apache.hadoop"/>
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = '    <dependency org="{}" name="{}" rev="{}" conf="default->default"/>'
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
    modules = [f"{module}:{version}" for module in _KAFKA_MODULES]
    if int(version.partition(".")[0]) >= 4:
        modules.append(_LOGGING_OF_4)
    return _jars(f"apache-kafka-{version}", f"Apache Kafka {version}'s jars", "56 MB", modules)


def spark_kafka_jars(version: str = SPARK_KAFKA) -> Path:
    """The folder with Spark's connector to Kafka and what it needs besides the pyspark wheel's own jars."""
    modules = [f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"]
    return _jars(f"spark-kafka-{version}", f"the jars of Spark's Kafka connector {version}", "20 MB", modules)


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


def _jars(name: str, what: str, size: str, modules: Sequence[str]) -> Path:
    """The folder of that name in the cache, with the jars of these modules and all they depend on."""
    cache = cache_dir()
    jars = cache / name
    if jars.is_dir():
        return jars
    cache.mkdir(parents=True, exist_ok=True)
    with _locked(cache / f"{name}.lock"):
        if not jars.is_dir():
            command = [java(), "-jar", str(pyspark_jar("ivy-2*.jar"))]
            sys.stderr.write(f"fetching {what} once (about {size}) into {cache} …\n")
            sys.stderr.flush()
            _fetch(command, what, modules, jars)
    return jars


def _fetch(ivy: list[str], what: str, modules: Sequence[str], jars: Path) -> None:
    ivy_cache = jars.parent / "ivy"
    partial = Path(tempfile.mkdtemp(prefix=f"{jars.name}.partial-", dir=jars.parent))
    try:
        module = partial / "ivy.xml"
        dependencies = "\n".join(_DEPENDENCY.format(*each.split(":")) for each in modules)
        module.write_text(_IVY_MODULE.format(name=jars.name, dependencies=dependencies), encoding="utf-8")
        command = [ivy[0], f"-Divy.default.ivy.user.dir={ivy_cache}", *ivy[1:]]
        command += ["-ivy", str(module), "-cache", str(ivy_cache), "-types", "jar", "bundle"]
        command += ["-retrieve", str(partial / "lib" / _JAR_PATTERN)]
        done = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if done.returncode != 0 or not list((partial / "lib").glob("kafka-clients-*.jar")):
            raise HarnessError(_explain(what, done))
        (partial / "lib").rename(jars)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _explain(what: str, ivy: subprocess.CompletedProcess[str]) -> str:
    last = "\n".join(f"  {line}" for line in ivy.stdout.splitlines()[-_LAST_LINES:])
    return (
        f"{what} could not be fetched (Ivy ended with {ivy.returncode}). "
        f"Maven Central must be reachable the first time. Ivy's last words:\n{last}"
    )
