"""The oldest pyspark that Restow works with, beside the one that is installed.

    env PYTHONPATH={pyspark_folder("4.0")} python …          imports that pyspark instead

It is fetched once into the user's cache; `requirements/spark-4.0.txt` pins it.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from harness.cache import fetched_once
from harness.java import Missing
from harness.pip import install

if TYPE_CHECKING:
    from pathlib import Path

OLDEST = "4.0"


def need_connect() -> None:
    """Raise Missing if the client of Spark Connect is not installed."""
    if find_spec("grpc") is None:
        raise Missing("grpcio, which the client of Spark Connect needs, is not installed: make setup")


def pyspark_folder(release: str = OLDEST) -> Path:
    """Return a folder with this pyspark and its py4j; fetch it if missing."""

    def fetch(partial: Path) -> Path:
        return install(f"spark-{release}", partial / "lib")

    return fetched_once(f"pyspark-{release}", f"pyspark {release} (430 MB)", fetch)
