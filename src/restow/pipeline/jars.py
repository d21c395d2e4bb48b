"""Java, and the jars that Spark needs for Kafka and for lakes of tables, for the pyspark that is installed.

The jars are fetched once, by the Ivy inside the pyspark wheel, into the user's cache:
`$RESTOW_CACHE`, otherwise `$XDG_CACHE_HOME/restow`, otherwise `~/.cache/restow`. Each is named: registries
have some releases without the modules that they name themselves.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from restow.errors import RestowError
from restow.pipeline.address import DELTA, ICEBERG

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

KAFKA = "kafka"
_SHARED = (
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    "org.apache.kafka:kafka-clients:3.9.0",
    "org.apache.commons:commons-pool2:2.12.0",
)
JARS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    KAFKA: {
        "4.0": ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0", *_SHARED),
        "4.1": ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1", *_SHARED),
        "4.2": ("org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0", *_SHARED),
    },
    ICEBERG: {
        "4.0": ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",),
        "4.1": ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0",),
    },
    DELTA: {
        "4.0": ("io.delta:delta-spark_2.13:4.0.1", "io.delta:delta-storage:4.0.1"),
        "4.1": ("io.delta:delta-spark_4.1_2.13:4.2.0", "io.delta:delta-storage:4.2.0"),
    },
}
"""The jars by kind and by release of Spark that they work with, first the one that has the code; pyspark has
all others that they need."""
_CALLED = {KAFKA: "Kafka connector", ICEBERG: "Iceberg runtime", DELTA: "Delta runtime"}

_IVY_MODULE = """\
<ivy-module version="2.0">
  <info organisation="restow" module="{name}"/>
  <dependencies>
{dependencies}
    <exclude org="org.apache.hadoop"/>
  </dependencies>
</ivy-module>
"""
_DEPENDENCY = '    <dependency org="{}" name="{}" rev="{}" conf="default->default" transitive="{}"/>'
_JAR_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"
_LAST_LINES = 15


class NoSpark(RestowError):
    """Spark cannot be used: Spark, Java or a jar is not installed, or Spark does not start."""


def find_java() -> str:
    """Return the `java` of JAVA_HOME, or of the PATH."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which(str(Path(home) / "bin" / "java") if home else "java")
    if found is None:
        where = f"JAVA_HOME is {home}, which has no bin/java" if home else "there is no java on the PATH"
        raise NoSpark(f"Spark needs Java 17 or newer, and {where}: install it, or set JAVA_HOME")
    return found


def cache_dir() -> Path:
    """Return the folder of downloads."""
    if own := os.environ.get("RESTOW_CACHE"):
        return Path(own)
    if shared := os.environ.get("XDG_CACHE_HOME"):
        return Path(shared) / "restow"
    return Path.home() / ".cache" / "restow"


def spark_release() -> str:
    """Return the release of the installed pyspark, such as 4.2."""
    return ".".join(version("pyspark").split(".")[:2])


def has_jars(kind: str) -> bool:
    """Return whether jars of this kind are known for the installed pyspark."""
    return spark_release() in JARS[kind]


def jars_of(kind: str) -> list[Path]:
    """Return the jars of this kind for the installed pyspark; fetch them if they are missing."""
    release = spark_release()
    if release not in JARS[kind]:
        known = list(JARS[kind])
        raise NoSpark(
            f"there is no {_CALLED[kind]} for Spark {release} yet, only for {', '.join(known)}: "
            f"pip install 'pyspark=={known[-1]}.*', or name its jars with --conf spark.jars=…"
        )
    modules = JARS[kind][release]
    kept = cache_dir() / f"{'-'.join(modules[0].split(':')[1:])}-only"
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=f"{kept.name}.partial-", dir=kept.parent))
        try:
            retrieve(modules, partial, transitive=False)
            try:
                (partial / "lib").rename(kept)
            except OSError:  # another process was faster
                if not kept.is_dir():
                    raise
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return sorted(kept.glob("*.jar"))


def retrieve(modules: Sequence[str], folder: Path, *, transitive: bool) -> None:
    """Fetch these modules, perhaps with all that they need, into `folder`/lib."""
    ivy_cache = cache_dir() / "ivy"
    module = folder / "ivy.xml"
    needs = "\n".join(_DEPENDENCY.format(*each.split(":"), str(transitive).lower()) for each in modules)
    module.write_text(_IVY_MODULE.format(name="jars", dependencies=needs), encoding="utf-8")
    command = [find_java(), f"-Divy.default.ivy.user.dir={ivy_cache}", "-jar", str(_ivy())]
    command += ["-ivy", str(module), "-cache", str(ivy_cache), "-types", "jar", "bundle"]
    command += ["-retrieve", str(folder / "lib" / _JAR_PATTERN)]
    ivy = subprocess.run(  # noqa: S603 (our own words)
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if ivy.returncode != 0 or not list((folder / "lib").glob("*.jar")):
        last = "\n".join(f"  {line}" for line in ivy.stdout.splitlines()[-_LAST_LINES:])
        raise NoSpark(
            f"{', '.join(modules)} could not be fetched (Ivy ended with {ivy.returncode}). Maven Central "
            f"must be reachable the first time. Ivy's last words:\n{last}"
        )


def _ivy() -> Path:
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        raise NoSpark("pyspark, whose wheel has Ivy, is not installed: pip install 'restow[spark]'")
    return max((Path(spec.origin).parent / "jars").glob("ivy-2*.jar"))
