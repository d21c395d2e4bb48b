"""Hold a lock that only one client of a cluster can hold, as long as it is alive.

The lock is a consumer group of the classic protocol. Its leader holds the lock, and tells all members so in
their assignments. The coordinator removes a member after the session timeout, so a holder that dies frees the
lock. Each member has its own instance id: one that comes back with the same id replaces its predecessor at
once.

    free ──take──▶ held ──beat──▶ held         removed, and another member has joined ──▶ lost
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from restow._frozen import frozen
from restow.client.errors import BrokerError, ClientError, LoginRefused, Unreachable
from restow.client.topics import TopicRequests
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from restow.client.link import Link
    from restow.wire.messages import Message

SESSION_S = 30.0
_BEAT_EVERY_S = 3.0
_LEAVE_WITHIN_S = 5.0
_PROTOCOL_TYPE, _PROTOCOL = "restow", "holder"
_OFFSETS_TOPIC = "__consumer_offsets"
_TRIES, _PAUSE_S = 20, 0.5
_WITHOUT_LIST = 3
"""The last version of FindCoordinator that asks for one group."""
_ANOTHER_COORDINATOR = (
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
)
_AT_REST = ("Stable", "Empty", "Dead", "")


@frozen
class GroupLockHolder:
    """A member of the group. What it `said` of itself is known only while the group is stable."""

    member_id: str
    instance_id: str | None
    host: str
    said: bytes = b""


_NOBODY_KNOWN = GroupLockHolder(member_id="", instance_id=None, host="")


class GroupLock:
    """A lock of one group, for one process. Others see `said` of its holder."""

    def __init__(
        self, link: Link, group: str, instance_id: str, said: bytes, session_s: float = SESSION_S
    ) -> None:
        self._link, self._group, self._instance, self._said = link, group, instance_id, said
        self._session_ms = int(session_s * 1000)
        self._beat_every_s = min(_BEAT_EVERY_S, session_s / 3)
        self._own: Link | None = None
        self._coordinator: int | None = None
        self._asked = False
        self._member, self._generation = "", -1
        self._taken: asyncio.Future[GroupLockHolder | None] = asyncio.get_running_loop().create_future()
        self.lost_to: GroupLockHolder | None = None
        """The member that holds the lock after this process has lost it."""

    async def holder(self) -> GroupLockHolder | None:
        """Return another holder of the lock; change nothing, and do not create Kafka's topic for groups."""
        try:
            await TopicRequests(self._link).describe_topics([_OFFSETS_TOPIC])
        except BrokerError as error:
            if error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return None
        return await self._other()

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Take the lock, and keep it until the context ends; both happen in the background.

        It has connections of its own: joining a group may take seconds, in which a broker answers nothing
        else on that connection; and a slow request must not delay the heartbeats.
        """
        keeping = asyncio.create_task(self._keep(self._taken))
        try:
            yield
        finally:
            with suppress(ClientError, TimeoutError):
                # An abandoned join request would leave a member behind.
                await asyncio.wait_for(self.taken(), _LEAVE_WITHIN_S)
            keeping.cancel()
            await asyncio.wait([keeping])
            with suppress(ClientError, TimeoutError):
                await asyncio.wait_for(self._leave(), _LEAVE_WITHIN_S)
            if self._own is not None:
                await self._own.close()

    async def taken(self) -> GroupLockHolder | None:
        """Wait until the lock is ours and return None, or return its holder. Raise if neither is known."""
        return await asyncio.shield(self._taken)

    async def _keep(self, taken: asyncio.Future[GroupLockHolder | None]) -> None:
        """Take the lock, then send heartbeats.

        An unreachable coordinator is retried: only its answer tells that another member holds the lock.
        """
        while self.lost_to is None:
            try:
                if self._own is None:
                    self._own = await self._link.another()
                other = await (self._beat() if self._member else self._take())
                if other is not None and not taken.done():
                    taken.set_result(other)
                    return
                self.lost_to = other
                if not taken.done():
                    taken.set_result(None)
            except ClientError as error:
                self._coordinator = None
                if not taken.done():
                    taken.set_exception(error)
                    taken.exception()  # it is not an error if the result is never awaited
                if self._is_final(error):
                    return
            await asyncio.sleep(self._beat_every_s)

    def _is_final(self, error: ClientError) -> bool:
        """Return whether to stop trying. A process that has held the lock stops only if its login fails."""
        if isinstance(error, LoginRefused):
            return True
        refused = isinstance(error, BrokerError) and error.code not in _ANOTHER_COORDINATOR
        return refused and self._generation < 0

    async def _take(self) -> GroupLockHolder | None:
        """Join, unless another member is there. If two join together, they learn which is first."""
        if (other := await self._other()) is not None:
            return other
        return None if await self._join() else await self._give_up()

    async def _give_up(self) -> GroupLockHolder:
        """Leave the lock to its holder."""
        await self._leave()
        return await self._other(of_all=True) or _NOBODY_KNOWN

    async def _beat(self) -> GroupLockHolder | None:
        answer = await self._ask(
            HeartbeatRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member,
                group_instance_id=self._instance,
                min_version=3,
            )
        )
        code = answer.error_code
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            return None if await self._join() else await self._give_up()
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            self._member = ""
            return await self._take()
        if code == ErrorCode.FENCED_INSTANCE_ID:
            self._member = ""
            return await self._other(of_all=True) or _NOBODY_KNOWN
        BrokerError.check(code)
        return None

    async def _join(self) -> bool:
        """Join the group, and return whether the lock is ours."""
        protocol = JoinGroupRequest.JoinGroupRequestProtocol
        for _ in range(_TRIES):
            joined = await self._ask(
                JoinGroupRequest(
                    group_id=self._group,
                    session_timeout_ms=self._session_ms,
                    rebalance_timeout_ms=self._session_ms,
                    member_id=self._member,
                    group_instance_id=self._instance,
                    protocol_type=_PROTOCOL_TYPE,
                    protocols=[protocol(name=_PROTOCOL, metadata=self._said)],
                    min_version=5,
                )
            )
            if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self._member = joined.member_id
                continue
            if joined.error_code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID):
                self._member = ""
                continue
            BrokerError.check(joined.error_code)
            self._member, self._generation = joined.member_id, joined.generation_id
            synced = await self._sync(joined)
            if synced.error_code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.ILLEGAL_GENERATION):
                continue
            if synced.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
                self._member = ""
                continue
            BrokerError.check(synced.error_code)
            return bytes(synced.assignment) == self._instance.encode()
        raise BrokerError(ErrorCode.REBALANCE_IN_PROGRESS, f"group {self._group!r} does not come to rest")

    async def _sync(self, joined: Message) -> Message:
        """Sync the group. The leader assigns the lock to itself, by its instance id."""
        assignment = SyncGroupRequest.SyncGroupRequestAssignment
        leads = joined.leader == joined.member_id
        return await self._ask(
            SyncGroupRequest(
                group_id=self._group,
                generation_id=self._generation,
                member_id=self._member,
                group_instance_id=self._instance,
                protocol_type=_PROTOCOL_TYPE,
                protocol_name=_PROTOCOL,
                assignments=[
                    assignment(member_id=each.member_id, assignment=self._instance.encode())
                    for each in (joined.members if leads else ())
                ],
                min_version=3,
            )
        )

    async def _other(self, *, of_all: bool = False) -> GroupLockHolder | None:
        """Return the first member of another instance, or with `of_all` any other member."""
        for left in reversed(range(_TRIES)):
            answer = await self._ask(DescribeGroupsRequest(groups=[self._group], min_version=4))
            (group,) = answer.groups
            if group.error_code != ErrorCode.GROUP_ID_NOT_FOUND:
                BrokerError.check(group.error_code)
            others = [
                GroupLockHolder(
                    member_id=each.member_id,
                    instance_id=each.group_instance_id,
                    host=each.client_host,
                    said=bytes(each.member_metadata or b""),
                )
                for each in group.members
                if each.member_id != self._member and (of_all or each.group_instance_id != self._instance)
            ]
            if not others:
                return None
            if group.group_state in _AT_REST or not left:
                return _holder(group, others)
            await asyncio.sleep(_PAUSE_S)
        return None

    async def remove(self, holder: GroupLockHolder) -> None:
        """Remove a member from the group."""
        identity = LeaveGroupRequest.MemberIdentity
        who = identity(member_id=holder.member_id, group_instance_id=holder.instance_id)
        await self._ask(LeaveGroupRequest(group_id=self._group, members=[who], min_version=3))

    async def _leave(self) -> None:
        """Leave, and delete the group if we may and it is empty. Kafka expires it later anyway."""
        if not self._member:
            return
        member, self._member = self._member, ""
        await self.remove(GroupLockHolder(member_id=member, instance_id=self._instance, host=""))
        await self._ask(DeleteGroupsRequest(groups_names=[self._group]))

    async def _ask(self, request: Message) -> Message:
        """Ask the coordinator, even if it changes meanwhile."""
        refusal: ClientError = BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        loop = asyncio.get_running_loop()
        until_s = loop.time() + _TRIES * _PAUSE_S
        while loop.time() < until_s:
            if self._coordinator is None and self._asked:
                await asyncio.sleep(_PAUSE_S)
            self._asked = True
            try:
                if self._coordinator is None:
                    self._coordinator = await self._find()
                answer = await (self._own or self._link).ask(request, self._coordinator)
            except LoginRefused:
                raise
            except Unreachable as error:
                refusal, self._coordinator = error, None
                continue
            except BrokerError as error:
                if error.code not in _ANOTHER_COORDINATOR:
                    raise
                refusal, self._coordinator = error, None
                continue
            if (code := _code_of(answer)) not in _ANOTHER_COORDINATOR:
                return answer
            refusal, self._coordinator = BrokerError(ErrorCode.of(code)), None
        raise refusal

    async def _find(self) -> int:
        request = FindCoordinatorRequest(key=self._group, key_type=0, max_version=_WITHOUT_LIST)
        answer = await (self._own or self._link).ask_anyone(request)
        BrokerError.check(answer.error_code, getattr(answer, "error_message", None))
        return int(answer.node_id)


def _code_of(answer: Message) -> int:
    """Return the response's own error code, or that of its first group."""
    parts = getattr(answer, "groups", None) or getattr(answer, "results", None) or [answer]
    return int(parts[0].error_code)


def _holder(group: Message, others: list[GroupLockHolder]) -> GroupLockHolder:
    """Return the member to which the group's leader has assigned the lock, or else the first."""
    said = {bytes(each.member_assignment or b"") for each in group.members}
    for each in others:
        if (each.instance_id or "").encode() in said:
            return each
    return others[0]
