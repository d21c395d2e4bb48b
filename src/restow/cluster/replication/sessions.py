"""Fetch sessions (KIP-227): a client sends only the changes since its last fetch.

    epoch 0            start a session; the response has its id
    epoch 1, 2, 3, …   continue it, each one higher than the last
    epoch -1           end the named session, and fetch without one

The number of sessions is limited. When all slots are taken, a new client gets the slot of one that was idle
for long, or fetches without a session. A follower may take a consumer's slot, a consumer never a follower's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.replication.fetches import Fetching
from restow.cluster.replication.values import FINAL_EPOCH, INITIAL_EPOCH, NO_SESSION
from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.cluster.replication.values import FetchSpec
    from restow.model import TopicPartition
    from restow.runtime.clock import Clock

_LARGEST = 0x7FFFFFFF


class Session:
    """A fetch session. Its partitions are in `fetching`."""

    __slots__ = ("fetching", "next_epoch", "session_id", "used_s")

    def __init__(self, session_id: int, fetching: Fetching, now_s: float) -> None:
        self.session_id = session_id
        self.fetching = fetching
        self.next_epoch = INITIAL_EPOCH + 1
        self.used_s = now_s


class FetchSessions:
    """The sessions of one broker, the least recently used first."""

    def __init__(self, clock: Clock, slots: int, eviction_ms: int) -> None:
        self._clock = clock
        self._slots = slots
        self._eviction_s = eviction_ms / 1000
        self._sessions: dict[int, Session] = {}
        self._last_id = clock.now_ms() % _LARGEST
        """Ids start from the current time, so that those of an earlier run do not come back soon."""

    def __len__(self) -> int:
        return len(self._sessions)

    def resolve(self, spec: FetchSpec) -> Session | ErrorCode | None:
        """Return the session that a fetch starts or continues, None without one, or the error code."""
        if spec.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            self._end(spec.session_id)
            return self._begin(spec) if spec.session_epoch == INITIAL_EPOCH else None
        session = self._sessions.get(spec.session_id)
        if session is None:
            return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
        if session.next_epoch != spec.session_epoch:
            return ErrorCode.INVALID_FETCH_SESSION_EPOCH
        session.next_epoch = 1 if spec.session_epoch == _LARGEST else spec.session_epoch + 1
        session.used_s = self._clock.monotonic_s()
        self._sessions[session.session_id] = self._sessions.pop(session.session_id)
        return session

    def partitions_of(self, session_id: int) -> tuple[TopicPartition, ...]:
        """Return the partitions of a session; none if there is no such session."""
        session = self._sessions.get(session_id)
        return () if session is None else tuple(session.fetching.wanted)

    def take_back_answer(self, session_id: int) -> int:
        """Make a session as it was before its last answer, which is not sent. Return the id to send instead.

        A session that has just begun ends, as its client does not know of it yet.
        """
        session = self._sessions.get(session_id)
        if session is None:
            return NO_SESSION
        if session.next_epoch == INITIAL_EPOCH + 1:
            self._end(session_id)
            return NO_SESSION
        session.fetching.tell_anew()
        return session_id

    def close(self) -> None:
        """End all sessions."""
        for session_id in tuple(self._sessions):
            self._end(session_id)

    def _begin(self, spec: FetchSpec) -> Session | None:
        if spec.is_follower:
            self._end_replaced(spec)
        now_s = self._clock.monotonic_s()
        if len(self._sessions) >= self._slots and not self._make_room(now_s, for_follower=spec.is_follower):
            return None
        while True:
            self._last_id = self._last_id % _LARGEST + 1
            if self._last_id not in self._sessions and self._last_id != NO_SESSION:
                break
        session = Session(self._last_id, Fetching(spec.replica_id), now_s)
        self._sessions[session.session_id] = session
        return session

    def _end_replaced(self, spec: FetchSpec) -> None:
        """End the sessions in which this follower fetched the same partitions before it connected anew.

        Otherwise a fetch of then that arrives late would set the follower's progress back, and the leader
        would not see it catch up: within a session it looks only at partitions that changed.
        """
        for session in tuple(self._sessions.values()):
            fetching = session.fetching
            if fetching.replica_id == spec.replica_id and not fetching.wanted.keys().isdisjoint(
                spec.partitions
            ):
                self._end(session.session_id)

    def _make_room(self, now_s: float, *, for_follower: bool) -> bool:
        for session in self._sessions.values():
            holds_follower = session.fetching.replica_id >= 0
            if holds_follower and not for_follower:
                continue
            if holds_follower != for_follower or now_s - session.used_s > self._eviction_s:
                self._end(session.session_id)
                return True
        return False

    def _end(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.fetching.hurry()
            session.fetching.close()
