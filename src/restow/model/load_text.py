"""Load models as files: JSON with one partition per line, so that they can be read, compared and edited.

    {"restow_load": 1, "cluster_id": "…", "made_ms": 1700000000000,
    "resources": {"bytes_in": {"capacity": {"1": 125000000.0}}, "cpu": {"capacity": {}}},
    "partitions": [
    {"topic": "orders", "partition": 0, "bytes_in": [1500.0, 1500.0], "cpu": [0.2, 0.1]},
    …]}

Of each pair the first number is the load of the leader, the second that of each follower.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from restow.errors import InvalidDocument
from restow.model.ids import TopicPartition
from restow.model.load import LoadModel, Resource

if TYPE_CHECKING:
    from numpy.typing import NDArray

VERSION = 1


def dumps(load: LoadModel) -> str:
    """The file's text."""
    head = {
        "restow_load": VERSION,
        "cluster_id": load.cluster_id,
        "made_ms": load.made_ms,
        "resources": {
            name: {"capacity": {str(broker): value for broker, value in resource.capacity.items()}}
            for name, resource in load.resources.items()
        },
    }
    columns = {
        name: list(zip(resource.leading.tolist(), resource.following.tolist(), strict=True))
        for name, resource in load.resources.items()
    }
    lines = ",\n".join(
        json.dumps(
            {
                "topic": name.topic,
                "partition": name.partition,
                **{resource: column[row] for resource, column in columns.items()},
            }
        )
        for row, name in enumerate(load.partitions)
    )
    fields = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    return f'{{{fields},\n"partitions": [\n{lines}]}}\n'


def loads(text: str, source: str = "the load model") -> LoadModel:
    """A load model from a file's text. `source` is how complaints call it."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidDocument(f"{source} is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("restow_load") != VERSION:
        raise InvalidDocument(f"{source} is not a load model of format {VERSION}")
    try:
        return _model(document, source)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        if isinstance(error, InvalidDocument):
            raise
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidDocument(f"{source} is damaged: {what}. Make it again") from None


def _model(document: dict[str, Any], source: str) -> LoadModel:
    rows = document["partitions"]
    names = tuple(TopicPartition(str(row["topic"]), int(row["partition"])) for row in rows)
    if len(set(names)) != len(names):
        twice = next(name for number, name in enumerate(names) if name in names[:number])
        raise InvalidDocument(f"{source} has {twice} twice: keep one")
    resources = {}
    for name, about in document["resources"].items():
        lacking = next((row for row in rows if name not in row), None)
        if lacking is not None:
            where = TopicPartition(lacking["topic"], lacking["partition"])
            raise InvalidDocument(f"{source} has no {name} of {where}")
        pairs = _pairs([row[name] for row in rows])
        resources[name] = Resource(
            leading=pairs[:, 0].copy(),
            following=pairs[:, 1].copy(),
            capacity={int(broker): float(value) for broker, value in about.get("capacity", {}).items()},
        )
    return LoadModel(
        cluster_id=str(document["cluster_id"]),
        made_ms=int(document["made_ms"]),
        partitions=names,
        resources=resources,
    )


def _pairs(given: list[list[float]]) -> NDArray[np.float64]:
    """All pairs below each other; one by one, for numpy takes far longer to find out how lists are nested."""
    odd = next((pair for pair in given if len(pair) != 2), None)
    if odd is not None:
        raise ValueError(f"{odd!r} is no pair of numbers")
    return np.fromiter(chain.from_iterable(given), np.float64, 2 * len(given)).reshape(-1, 2)
