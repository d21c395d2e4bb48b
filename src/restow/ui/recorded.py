"""A cluster that was recorded: a snapshot in a file, and the story that `restow ui --demo` shows.

story.zip
  snapshot.json  load.json      what `restow snapshot` and the pipeline write
  groups.json  lake.json        what `/api/v1/groups` and `/api/v1/lake` answer
  state/                        the folder of the journals, with plans and rehearsals
"""

from __future__ import annotations

import io
import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile

from restow.client import GroupLag, PartitionLag
from restow.client.values import ConsumerGroup, GroupMember
from restow.errors import InvalidInput
from restow.model import TopicPartition
from restow.snapshot import read_snapshot
from restow.ui.groups import GroupsLook

if TYPE_CHECKING:
    from collections.abc import Mapping

    from restow.model import Snapshot

STORY = "story.zip"
SNAPSHOT, LOAD, GROUPS, LAKE, STATE = "snapshot.json", "load.json", "groups.json", "lake.json", "state"


class RecordedCluster:
    """A snapshot in a file, instead of a cluster; it is read again when the file has changed."""

    def __init__(self, path: str, groups: GroupsLook | None = None) -> None:
        self._path, self._groups = path, groups
        self._read: tuple[int, Snapshot] | None = None

    def snapshot(self) -> Snapshot:
        mark = Path(self._path).stat().st_mtime_ns
        if self._read is None or self._read[0] != mark:
            self._read = (mark, read_snapshot(self._path))
        return self._read[1]

    def groups(self, now_ms: int) -> GroupsLook | None:  # noqa: ARG002
        return self._groups

    def close(self) -> None:
        """There is nothing to hang up."""


def unpack_story(folder: str) -> None:
    """Unpack the story that comes with Restow."""
    data = files(__package__).joinpath(STORY).read_bytes()
    with ZipFile(io.BytesIO(data)) as story:
        story.extractall(folder)


def read_groups(path: Path) -> GroupsLook:
    """Read the answer of `/api/v1/groups` back."""
    try:
        told = json.loads(path.read_bytes())
        return GroupsLook(at_ms=int(told["at_ms"]), groups=tuple(map(_group, told["groups"])))
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InvalidInput(f"{path} does not tell groups: {error}") from error


def _group(told: Mapping[str, Any]) -> GroupLag:
    members = {
        each["id"]: GroupMember(
            **{
                **each,
                "held": tuple(map(TopicPartition.parse, each["held"])),
                "target": each["target"] and tuple(map(TopicPartition.parse, each["target"])),
                "topics": None if each["topics"] is None else tuple(each["topics"]),
            }
        )
        for each in told["members"]
    }
    names = ("committed", "earliest", "latest", "lag_ms")
    return GroupLag(
        group=ConsumerGroup(
            name=str(told["group"]),
            state=str(told["state"]),
            protocol=str(told["protocol"]),
            assignor=told["assignor"],
            members=tuple(members.values()),
        ),
        coordinator=int(told["coordinator"]),
        partitions=tuple(
            PartitionLag(
                partition=TopicPartition(str(each["topic"]), int(each["partition"])),
                member=members.get(each["member"]),
                **{name: each[name] for name in names},
            )
            for each in told["partitions"]
        ),
    )
