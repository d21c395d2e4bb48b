"""Members of a group, the ids of static ones, and ids that have not joined yet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from restow.cluster.groups.records import MemberValue
from restow.cluster.groups.requests import JoinedMember

if TYPE_CHECKING:
    from collections.abc import Iterator

    from restow.cluster.groups.effects import Ticket
    from restow.cluster.groups.requests import JoinRequest


@dataclass(slots=True, kw_only=True)
class ClassicGroupMember:
    """One member, with the tickets of its waiting requests.

    `is_new` until its first generation starts: until then it has no id and cannot send heartbeats.
    """

    id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]
    assignment: bytes = b""
    is_new: bool = False
    join_ticket: Ticket | None = None
    sync_ticket: Ticket | None = None

    @classmethod
    def joining(cls, member_id: str, request: JoinRequest) -> ClassicGroupMember:
        return cls(
            id=member_id,
            instance_id=request.instance_id,
            client_id=request.client_id,
            client_host=request.client_host,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols=request.protocols,
            is_new=True,
        )

    @classmethod
    def written(cls, value: MemberValue, protocol_name: str) -> ClassicGroupMember:
        """Restore a member from its record, which has only the chosen protocol."""
        return cls(
            id=value.member_id,
            instance_id=value.instance_id,
            client_id=value.client_id,
            client_host=value.client_host,
            session_timeout_ms=value.session_timeout_ms,
            rebalance_timeout_ms=value.rebalance_timeout_ms,
            protocols=((protocol_name, value.subscription),),
            assignment=value.assignment,
        )

    def as_value(self, protocol_name: str, assignment: bytes) -> MemberValue:
        return MemberValue(
            member_id=self.id,
            instance_id=self.instance_id,
            client_id=self.client_id,
            client_host=self.client_host,
            rebalance_timeout_ms=self.rebalance_timeout_ms,
            session_timeout_ms=self.session_timeout_ms,
            subscription=self.metadata(protocol_name),
            assignment=assignment,
        )

    @property
    def is_waiting(self) -> bool:
        return self.join_ticket is not None or self.sync_ticket is not None

    @property
    def protocol_names(self) -> frozenset[str]:
        return frozenset(name for name, _ in self.protocols)

    def metadata(self, protocol_name: str) -> bytes:
        """Return its metadata for that protocol."""
        return next((metadata for name, metadata in self.protocols if name == protocol_name), b"")


class Roster:
    """The members in the order they came. The first one leads until it leaves.

    Counts of waiting members and of protocols are kept up to date, because every join needs them. So tickets
    and protocols are only changed through here.
    """

    def __init__(self) -> None:
        self.members: dict[str, ClassicGroupMember] = {}
        self.static_ids: dict[str, str] = {}
        self.pending: set[str] = set()
        self.leader: str | None = None
        self.joined = 0
        self._speakers: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self.members)

    def __iter__(self) -> Iterator[ClassicGroupMember]:
        """Iterate over a copy, because members may leave meanwhile."""
        return iter(tuple(self.members.values()))

    def add(self, member: ClassicGroupMember) -> None:
        self.members[member.id] = member
        self.pending.discard(member.id)
        self.joined += member.join_ticket is not None
        self._speakers.update(member.protocol_names)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.id
        if self.leader is None:
            self.leader = member.id

    def remove(self, member: ClassicGroupMember) -> None:
        del self.members[member.id]
        self.joined -= member.join_ticket is not None
        self._silence(member)
        if member.instance_id is not None:
            del self.static_ids[member.instance_id]
        if self.leader == member.id:
            self.leader = next(iter(self.members), None)

    def wait_to_join(self, member: ClassicGroupMember, ticket: Ticket | None) -> None:
        """Set or clear a member's join ticket."""
        self.joined += (ticket is not None) - (member.join_ticket is not None)
        member.join_ticket = ticket

    def change_protocols(self, member: ClassicGroupMember, protocols: tuple[tuple[str, bytes], ...]) -> None:
        """Set a member's protocols."""
        self._silence(member)
        member.protocols = protocols
        self._speakers.update(member.protocol_names)

    def rename(self, member: ClassicGroupMember, new_id: str) -> None:
        """Rename a static member; it keeps its place and its leadership."""
        if self.leader == member.id:
            self.leader = new_id
        self.members = {new_id if known == member.id else known: it for known, it in self.members.items()}
        member.id = new_id
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = new_id

    def elect(self) -> bool:
        """Choose a leader among the joined members; False if there is none."""
        leader = self.members.get(self.leader) if self.leader is not None else None
        if leader is None or leader.join_ticket is None:
            leader = next((member for member in self if member.join_ticket is not None), None)
            if leader is None:
                return False
            self.leader = leader.id
        return True

    @property
    def all_joined(self) -> bool:
        """Return whether all members, and all ids that have not joined yet, have joined."""
        return not self.pending and self.joined == len(self.members)

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return the longest timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def all_speak(self, protocol_name: str) -> bool:
        """Return whether every member supports that protocol."""
        return self._speakers[protocol_name] == len(self.members)

    def vote(self) -> str:
        """Return the shared protocol that most members prefer; at a tie, the one named first."""
        votes = Counter(
            next(name for name, _ in member.protocols if self.all_speak(name))
            for member in self.members.values()
        )
        return votes.most_common(1)[0][0]

    def as_joined(self, protocol_name: str) -> tuple[JoinedMember, ...]:
        """Return the members for the leader's response."""
        return tuple(
            JoinedMember(member.id, member.instance_id, member.metadata(protocol_name)) for member in self
        )

    def _silence(self, member: ClassicGroupMember) -> None:
        """Forget protocol names that no member uses, because clients could send new ones for ever."""
        for name in member.protocol_names:
            self._speakers[name] -= 1
            if not self._speakers[name]:
                del self._speakers[name]
