"""Load model files: JSON with one partition per line, to read, compare and edit.

    {"restow_load": 1, "cluster_id": "…", "made_ms": 1700000000000,
    "resources": {"bytes_in": {"capacity": {"1": 125000000.0}}, "cpu": {"capacity": {}}},
    "partitions": [
    {"topic": "orders", "partition": 0, "bytes_in": [1500.0, 1500.0], "cpu": [0.2, 0.1]},
    …]}

The first number of each pair is the leader's load, the second that of each follower. A resource may also have
`"hours": {"orders": [1.0, null, …]}`, 168 multiples of a topic's load, null where it was never sampled, and
`"reached"`, the most that one broker was seen to carry.
"""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from restow.errors import InvalidDocument
from restow.model import fields
from restow.model.ids import TopicPartition
from restow.model.load import WEEK_HOURS, LoadModel, Resource
from restow.model.long_json import read

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from restow.model.long_json import Pieces

VERSION = 1
_MOST = 1e18


def dumps(load: LoadModel) -> str:
    """Return the text of the load model's file."""
    head = {
        "restow_load": VERSION,
        "cluster_id": load.cluster_id,
        "made_ms": load.made_ms,
        "resources": {name: _about(resource) for name, resource in load.resources.items()},
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
    head_text = ",\n".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items())
    return f'{{{head_text},\n"partitions": [\n{lines}]}}\n'


def _about(resource: Resource) -> dict[str, Any]:
    """Return what a file says of a resource before it lists partitions."""
    about: dict[str, Any] = {"capacity": {str(broker): each for broker, each in resource.capacity.items()}}
    if resource.hours:
        about["hours"] = {
            topic: [None if np.isnan(each) else each for each in hours.tolist()]
            for topic, hours in resource.hours.items()
        }
    if resource.reached is not None:
        about["reached"] = resource.reached
    return about


def loads(text: str, source: str = "the load model") -> LoadModel:
    """Parse the text of a load model's file; `source` names it in errors."""
    with fields.damage_named(source, "Make it again"):
        return read(text, "partitions", "topic", lambda document, pieces: _model(document, pieces, source))


def _model(document: Any, pieces: Pieces, source: str) -> LoadModel:
    if not isinstance(document, dict) or document.get("restow_load") != VERSION:
        raise InvalidDocument(f"{source} is not a load model of format {VERSION}")
    about = {
        fields.text(name): fields.members(each)
        for name, each in fields.members(document["resources"]).items()
    }
    names: list[TopicPartition] = []
    columns: dict[str, list[NDArray[np.float64]]] = {name: [np.empty((0, 2))] for name in about}
    for rows in pieces:
        names += [
            TopicPartition(fields.text(row["topic"]), fields.number(row["partition"], fields.INT_MAX))
            for row in fields.items(rows)
        ]
        for name, found in columns.items():
            found.append(_pairs(name, rows, source))
    if len(set(names)) != len(names):
        twice = next(name for name, many in Counter(names).items() if many > 1)
        raise InvalidDocument(f"{source} has {twice} twice: keep one")
    resources = {}
    for name, found in columns.items():
        pairs = np.concatenate(found)
        resources[name] = Resource(
            leading=pairs[:, 0].copy(),
            following=pairs[:, 1].copy(),
            capacity=fields.by_broker(about[name].get("capacity", {}), _capacity),
            hours={
                fields.text(topic): _hours(each)
                for topic, each in fields.members(about[name].get("hours", {})).items()
            },
            reached=fields.optional(about[name].get("reached"), _capacity),
        )
    return LoadModel(
        cluster_id=fields.text(document["cluster_id"]),
        made_ms=fields.number(document["made_ms"]),
        partitions=tuple(names),
        resources=resources,
    )


def _capacity(value: object) -> float:
    """Return a broker's capacity."""
    found = fields.real(value)
    if not 0 < found <= _MOST:
        raise ValueError(f"{found:g} is not a capacity: give a number above 0, up to {_MOST:g}")
    return found


def _hours(value: object) -> NDArray[np.float64]:
    """Return multiples of a load by hour of the week."""
    found = [fields.optional(each, fields.real) for each in fields.items(value)]
    if len(found) != WEEK_HOURS or any(each is not None and not 0 <= each <= _MOST for each in found):
        raise ValueError(f"hours must be {WEEK_HOURS} numbers from 0 on, or null where nothing is known")
    return np.array(found, dtype=np.float64)


def _pairs(name: str, rows: list[dict[str, Any]], source: str) -> NDArray[np.float64]:
    """Return all pairs as rows, converted one by one: numpy takes far longer to inspect nested lists."""
    try:
        given = [row[name] for row in rows]
    except KeyError:
        lacking = next(row for row in rows if name not in row)
        where = TopicPartition(lacking["topic"], lacking["partition"])
        raise InvalidDocument(f"{source} has no {name} of {where}") from None
    if {*map(len, given)} - {2}:
        odd = next(pair for pair in given if len(pair) != 2)
        raise ValueError(f"{odd!r} is no pair of numbers")
    return np.fromiter(chain.from_iterable(given), np.float64, 2 * len(given)).reshape(-1, 2)
