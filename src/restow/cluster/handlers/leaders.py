"""Names the current leader to a client that asked the wrong broker (KIP-951), to save a Metadata call."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from restow.wire.error_codes import ErrorCode
from restow.wire.fetch import Fetched
from restow.wire.primitives import LeaderAndEpoch
from restow.wire.produce import Produced

if TYPE_CHECKING:
    from collections.abc import Iterable

    from restow.cluster.broker.services import RequestContext
    from restow.model import TopicPartition
    from restow.wire.primitives import Endpoint


_Result = TypeVar("_Result", Produced, Fetched)
_ELSEWHERE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


def with_leader(
    result: _Result, partition: TopicPartition, context: RequestContext, leaders: set[int]
) -> _Result:
    """Add the partition's leader to a result if it is another broker, and that broker to `leaders`."""
    known = context.broker.metadata.partition(partition)
    if result.error_code not in _ELSEWHERE or known is None or known.leader_id < 0:
        return result
    if known.leader_id == context.broker.broker_id:
        return result
    leaders.add(known.leader_id)
    return result._replace(current_leader=LeaderAndEpoch(known.leader_id, known.leader_epoch))


def endpoints_of(context: RequestContext, brokers: Iterable[int]) -> list[Endpoint]:
    """Return the addresses of the live ones among these brokers."""
    alive = context.broker.metadata.at(context.listener)
    return [alive[each] for each in sorted(brokers) if each in alive]
