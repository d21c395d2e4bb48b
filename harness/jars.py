"""The jars of Apache Kafka and of Spark's connector to it, fetched once into the user's cache (cache.py)."""

from __future__ import annotations

import re
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache import cache_dir, fetched_once
from harness.java import Missing, java

if TYPE_CHECKING:
    from collections.abc import Sequence

KAFKA_VERSION = "3.9.1"
"""The last version with a ZooKeeper mode, and the reference for behaviour."""
KAFKA_4 = "4.3.1"
"""Today's version: KRaft only."""
SPARK_KAFKA = "4.0.0"
"""The connector for the pyspark in use."""

_KAFKA_MODULES = ("org.apache.kafka:kafka_2.13", "org.apache.kafka:kafka-tools")
# From version 4 on Kafka logs with log4j 2, but only its distribution includes the binding.
_LOGGING_OF_4 = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"
# The pyspark wheel already includes Hadoop.
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


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the folder with all jars of that Apache Kafka; fetch it if missing."""
    if not re.fullmatch(r"\d+(\.\d+)+(-\w+)?", version):
        raise ValueError(f"{version!r} is not a version of Apache Kafka, such as {KAFKA_VERSION}")
    modules = [f"{module}:{version}" for module in _KAFKA_MODULES]
    if int(version.partition(".")[0]) >= 4:
        modules.append(_LOGGING_OF_4)
    return _jars(f"apache-kafka-{version}", f"Apache Kafka {version}'s jars (56 MB)", modules)


def spark_kafka_jars(version: str = SPARK_KAFKA) -> Path:
    """Return the folder with Spark's Kafka connector and its dependencies outside the pyspark wheel."""
    modules = [f"org.apache.spark:spark-sql-kafka-0-10_2.13:{version}"]
    return _jars(f"spark-kafka-{version}", f"the jars of Spark's Kafka connector {version} (20 MB)", modules)


def pyspark_jar(pattern: str) -> Path:
    """Return the one jar inside the pyspark wheel whose name matches."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise Missing("pyspark, whose wheel carries Ivy and py4j, is not installed: make setup")
    found = sorted((Path(spec.origin).parent / "jars").glob(pattern))
    if not found:
        raise Missing(f"the installed pyspark has no {pattern}: make setup installs the one that has")
    return found[-1]


def _jars(name: str, what: str, modules: Sequence[str]) -> Path:
    """Return the folder with the jars of these modules and their dependencies."""

    def fetch(partial: Path) -> Path:
        ivy_cache = cache_dir() / "ivy"
        module = partial / "ivy.xml"
        dependencies = "\n".join(_DEPENDENCY.format(*each.split(":")) for each in modules)
        module.write_text(_IVY_MODULE.format(name=name, dependencies=dependencies), encoding="utf-8")
        command = [java(), f"-Divy.default.ivy.user.dir={ivy_cache}", "-jar", str(pyspark_jar("ivy-2*.jar"))]
        command += ["-ivy", str(module), "-cache", str(ivy_cache), "-types", "jar", "bundle"]
        command += ["-retrieve", str(partial / "lib" / _JAR_PATTERN)]
        ivy = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if ivy.returncode != 0 or not list((partial / "lib").glob("kafka-clients-*.jar")):
            raise Missing(_explain(what, ivy))
        return partial / "lib"

    return fetched_once(name, what, fetch)


def _explain(what: str, ivy: subprocess.CompletedProcess[str]) -> str:
    last = "\n".join(f"  {line}" for line in ivy.stdout.splitlines()[-_LAST_LINES:])
    return (
        f"{what} could not be fetched (Ivy ended with {ivy.returncode}). "
        f"Maven Central must be reachable the first time. Ivy's last words:\n{last}"
    )
