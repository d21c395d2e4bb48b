"""Write the files of a Spark declarative pipeline (Spark 4.1 and later).

DIR/spark-pipeline.yml         settings, and where definitions are; `spark-pipelines run --spec` takes it
DIR/definitions/tables.py      calls `declared.define`, each time the pipeline runs
"""

from __future__ import annotations

import json
from dataclasses import field, replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.errors import InvalidInput
from restow.pipeline.address import ICEBERG, LakeAddress, lake_address
from restow.pipeline.files import is_address
from restow.pipeline.jars import NoSpark, spark_release
from restow.text_files import write_text

if TYPE_CHECKING:
    from collections.abc import Mapping

_SPEC, _DEFINITIONS = "spark-pipeline.yml", "definitions/tables.py"
_SPECS = (_SPEC, "spark-pipeline.yaml")
_FIRST_RELEASE = (4, 1)
_STATIC = ("spark.sql.warehouse.dir", "spark.sql.extensions", "spark.sql.catalogImplementation")
_MADE_BY = "Made by `restow pipeline declare`, which replaces this file."
_NEEDED = "pip install 'restow[spark]' 'pyspark[pipelines]>=4.1'"


@frozen
class Declaration:
    """What the tables are made of, and how."""

    lake: str
    window_s: int = 300
    fill: float = 0.9
    limit: Mapping[str, float] = field(default_factory=dict)


@frozen
class Declared:
    """A pipeline's files, and the command that runs it."""

    paths: tuple[str, ...]
    command: tuple[str, ...]


def declare(
    folder: str, about: Declaration, *, database: str | None = None, conf: Mapping[str, str] | None = None
) -> Declared:
    """Write a pipeline's spec and definitions into a folder."""
    _need_pipelines()
    from restow.pipeline.lake import SETTINGS
    from restow.pipeline.session import with_lake

    home = Path(folder).absolute()
    for name in _SPECS:
        if (home / name).exists() and _MADE_BY not in (home / name).read_text(errors="replace"):
            raise InvalidInput(f"{home / name} is there, and not made by this command: give another folder")
    settings = with_lake({**SETTINGS, **(conf or {})}, about.lake)
    spec: dict[str, object] = {
        "name": "restow",
        "storage": (home / "storage").as_uri(),
        "libraries": [{"glob": {"include": "definitions/**"}}],
        "configuration": {name: value for name, value in settings.items() if not _from_the_start(name)},
    }
    if database is not None:
        spec["database"] = database
    written = {
        _SPEC: f"# {_MADE_BY}\n" + "".join(f"{name}: {json.dumps(value)}\n" for name, value in spec.items()),
        _DEFINITIONS: _definitions(replace(about, lake=_absolute(about.lake))),
    }
    for name, text in written.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        write_text(str(home / name), text)
    at_start = [f"{name}={value}" for name, value in settings.items() if _from_the_start(name)]
    conf_words = [word for each in at_start for word in ("--conf", each)]
    return Declared(
        paths=tuple(str(home / name) for name in written),
        command=("spark-pipelines", *conf_words, "run", "--spec", str(home / _SPEC)),
    )


def _from_the_start(name: str) -> bool:
    """Return whether a spec cannot set this: Spark must have it when it starts."""
    return name in _STATIC or not name.startswith("spark.sql.")


def _need_pipelines() -> None:
    try:
        release = spark_release()
    except PackageNotFoundError as error:
        raise NoSpark(f"Spark is not installed: {_NEEDED}") from error
    if tuple(map(int, release.split("."))) < _FIRST_RELEASE:
        raise NoSpark(
            f"Spark {release} has no declarative pipelines: {_NEEDED}, or use `restow pipeline run`"
        )


def _absolute(lake: str) -> str:
    """Return the lake's place as the pipeline finds it, which runs in a folder of its own."""
    address = lake_address(lake)
    if address.kind == ICEBERG or is_address(address.place):
        return lake
    return LakeAddress(address.kind, str(Path(address.place).absolute())).text


def _definitions(about: Declaration) -> str:
    return f'''"""The tables of a lake, as the jobs of Restow make them.

{_MADE_BY}
"""

from restow.pipeline.declared import Declaration, define

define(
    spark,  # noqa: F821 (given by spark-pipelines)
    Declaration(
        lake={about.lake!r},
        window_s={about.window_s},
        fill={about.fill},
        limit={dict(about.limit)!r},
    ),
)
'''
