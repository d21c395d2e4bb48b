"""The records that a group's decisions leave, in order, until they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.groups.consumer.records import (
    ConsumerGroupKey,
    RecordKind,
    encode_current,
    encode_epoch,
    encode_member,
    encode_pattern,
    encode_target,
    encode_target_epoch,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.groups.consumer.members import ConsumerGroupMember, TopicIdPartition
    from restow.cluster.groups.consumer.records import ResolvedPattern
    from restow.cluster.groups.journal import KeyAndValue


class GroupRecords:
    """Records of one group. `take` empties it."""

    def __init__(self, group_id: str) -> None:
        self._group_id = group_id
        self._pending: list[KeyAndValue] = []

    def take(self) -> list[KeyAndValue]:
        taken, self._pending = self._pending, []
        return taken

    def epoch(self, epoch: int, metadata_hash: int) -> None:
        self._add(RecordKind.GROUP, "", encode_epoch(epoch, metadata_hash))

    def member(self, member: ConsumerGroupMember) -> None:
        self._add(RecordKind.MEMBER, member.id, encode_member(member))

    def target_epoch(self, epoch: int, assigned_at_ms: int) -> None:
        self._add(RecordKind.TARGET_EPOCH, "", encode_target_epoch(epoch, assigned_at_ms))

    def target(self, member_id: str, target: Iterable[TopicIdPartition]) -> None:
        self._add(RecordKind.TARGET, member_id, encode_target(target))

    def current(self, member: ConsumerGroupMember) -> None:
        self._add(RecordKind.CURRENT, member.id, encode_current(member))

    def pattern(self, pattern: str, resolved: ResolvedPattern | None) -> None:
        """Add a resolved expression; None if no member uses it any more."""
        self._add(RecordKind.PATTERN, pattern, None if resolved is None else encode_pattern(resolved))

    def without(self, member_id: str) -> None:
        """Add the tombstones of a member."""
        for kind in (RecordKind.CURRENT, RecordKind.TARGET, RecordKind.MEMBER):
            self._add(kind, member_id, None)

    def end(self) -> None:
        """Add the tombstones of the group itself, when its members are gone."""
        for kind in (RecordKind.TARGET_EPOCH, RecordKind.GROUP):
            self._add(kind, "", None)

    def _add(self, kind: RecordKind, name: str, value: bytes | None) -> None:
        self._pending.append((ConsumerGroupKey(kind, self._group_id, name).encode(), value))
