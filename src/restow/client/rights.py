"""Our permissions on a cluster, and the voters of its quorum."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.client.errors import BrokerError
from restow.client.link import Requests
from restow.client.values import Quorum
from restow.model.permissions import Permissions
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import ApiVersionsRequest, DescribeQuorumRequest, MetadataRequest
from restow.wire.operations import OPERATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_FIRST_THAT_TELLS, _LAST_FOR_CLUSTERS = 8, 10
"""Versions of Metadata; later ones leave the cluster to DescribeCluster, which came with 2.8."""
_DESCRIBE_QUORUM = 55
_METADATA_TOPIC = "__cluster_metadata"


class RightRequests(Requests):
    """Requests about our permissions and the metadata quorum."""

    async def permissions(self, topics: Sequence[str] = ()) -> Permissions:
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics],
            allow_auto_topic_creation=False,
            include_cluster_authorized_operations=True,
            include_topic_authorized_operations=True,
            min_version=_FIRST_THAT_TELLS,
            max_version=_LAST_FOR_CLUSTERS,
        )
        answer = await self._link.ask_anyone(request)
        return Permissions(
            cluster=_names(answer.authorized_operations),
            topics={
                topic.name: frozenset()
                if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
                else _names(topic.authorized_operations)
                for topic in answer.topics
            },
        )

    async def describe_metadata_quorum(self) -> Quorum | None:
        """Return the quorum; clusters without one do not support the request."""
        known = await self._link.ask_anyone(ApiVersionsRequest(max_version=2))
        BrokerError.check(known.error_code)
        if _DESCRIBE_QUORUM not in {each.api_key for each in known.api_keys}:
            return None
        topic = DescribeQuorumRequest.TopicData
        request = DescribeQuorumRequest(
            topics=[topic(topic_name=_METADATA_TOPIC, partitions=[topic.PartitionData(partition_index=0)])]
        )
        answer = await self._link.ask_anyone(request)
        needs = "DESCRIBE on the cluster"
        BrokerError.check(answer.error_code, needs=needs)
        (partition,) = answer.topics[0].partitions
        BrokerError.check(partition.error_code, needs=needs)
        return Quorum(
            leader=partition.leader_id if partition.leader_id >= 0 else None,
            voters=tuple(sorted(each.replica_id for each in partition.current_voters)),
        )


def _names(operations: Iterable[int] | None) -> frozenset[str] | None:
    """Return operations by name; later ones than this list do not matter here."""
    if operations is None:
        return None
    return frozenset(OPERATIONS[each] for each in operations if each in OPERATIONS)
