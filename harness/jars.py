"""The jars of Apache Kafka and of Spark's connector to it, fetched once into the user's cache (cache.py)."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cache import fetched_once
from harness.java import Missing, java
from restow.pipeline.jars import KAFKA, NoSpark, jars_of, retrieve

if TYPE_CHECKING:
    from collections.abc import Sequence

KAFKA_VERSION = "3.9.1"
"""The last version with a ZooKeeper mode, and the reference for behaviour."""
KAFKA_4 = "4.3.1"
"""Today's version: KRaft only."""

_KAFKA_MODULES = ("org.apache.kafka:kafka_2.13", "org.apache.kafka:kafka-tools")
# From version 4 on Kafka logs with log4j 2, but only its distribution includes the binding.
_LOGGING_OF_4 = "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4"


def kafka_jars(version: str = KAFKA_VERSION) -> Path:
    """Return the folder with all jars of that Apache Kafka; fetch it if missing."""
    if not re.fullmatch(r"\d+(\.\d+)+(-\w+)?", version):
        raise ValueError(f"{version!r} is not a version of Apache Kafka, such as {KAFKA_VERSION}")
    modules = [f"{module}:{version}" for module in _KAFKA_MODULES]
    if int(version.partition(".")[0]) >= 4:
        modules.append(_LOGGING_OF_4)
    return _jars(f"apache-kafka-{version}", f"Apache Kafka {version}'s jars (56 MB)", modules)


def application_jars(version: str = KAFKA_4) -> Path:
    """Return the folder with the jars of Kafka Streams, its examples and Kafka Connect's file connectors."""
    modules = [f"org.apache.kafka:{name}:{version}" for name in ("kafka-streams-examples", "connect-file")]
    return _jars(f"apache-kafka-applications-{version}", f"Kafka Streams {version}'s jars (100 MB)", modules)


def spark_kafka_jars() -> list[Path]:
    """Return the jars of Spark's Kafka connector for the pyspark in use."""
    java()
    try:
        return jars_of(KAFKA)
    except NoSpark as error:
        raise Missing(str(error)) from error


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
        java()
        try:
            retrieve(modules, partial, transitive=True)
        except NoSpark as error:
            raise Missing(f"{what}: {error}") from error
        return partial / "lib"

    return fetched_once(name, what, fetch)
