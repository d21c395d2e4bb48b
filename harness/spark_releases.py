"""The oldest pyspark that Restow works with, beside the one that is installed.

    env PYTHONPATH={pyspark_folder("4.0")} python …          imports that pyspark instead

It is fetched once into the user's cache; `requirements/spark-4.0.txt` pins it.
"""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from harness.cache import fetched_once
from harness.java import Missing

_REQUIREMENTS = Path(__file__).parents[1] / "requirements"
OLDEST = "4.0"


def need_connect() -> None:
    """Raise Missing if the client of Spark Connect is not installed."""
    if find_spec("grpc") is None:
        raise Missing("grpcio, which the client of Spark Connect needs, is not installed: make setup")


def pyspark_folder(release: str = OLDEST) -> Path:
    """Return a folder with this pyspark and its py4j; fetch it if missing."""
    pinned = _REQUIREMENTS / f"spark-{release}.txt"
    what = f"pyspark {release} (430 MB)"

    def fetch(partial: Path) -> Path:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        command += ["--require-hashes", "--no-deps", "--no-build-isolation", "--no-compile"]
        command += ["--target", str(partial / "lib"), "-r", str(pinned)]
        pip = subprocess.run(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        if pip.returncode != 0:
            raise Missing(f"{what} could not be fetched: {pip.stdout.strip()[-1000:]}")
        return partial / "lib"

    return fetched_once(f"pyspark-{release}", what, fetch)
