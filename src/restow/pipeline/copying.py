"""Copy a lake to another place, of the same kind or another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.errors import InvalidInput
from restow.pipeline.schemas import CLUSTER, NAMES, table
from restow.pipeline.work import Scope, Work

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.pipeline.lake import Lake


def copied(source: Lake, target: Lake, scope: Scope) -> Iterator[str]:
    """Copy the tables within the scope; yield the name of each when it is done.

    Samples join those of the target and count once. The results of jobs replace those of the same clusters.
    """
    if source.path == target.path:
        raise InvalidInput(f"--to {target.path!r} is the lake itself: give another place")
    for name in NAMES:
        if not table(name).sampled:
            rows = source.read(name, clusters=scope.clusters)
            clusters = tuple(row[CLUSTER] for row in rows.select(CLUSTER).distinct().collect())
            if clusters:
                Work(target, Scope(clusters=clusters)).keep(name, rows)
                yield name
            continue
        rows = Work(source, scope).samples(name)
        if not rows.isEmpty():
            target.write(rows, name)
            yield name
