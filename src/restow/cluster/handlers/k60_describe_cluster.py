"""DescribeCluster: return id, controller and brokers of the cluster.

Behaviour: authorized operations are all operations, because there is no authorization.
Versions: 1 asks for brokers or controllers; controllers are refused with UNSUPPORTED_ENDPOINT_TYPE.
"""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import DescribeClusterResponse, Message
from restow.wire.operations import ON_CLUSTERS

_BROKERS = 1
_CONTROLLERS = 2


@handles(60, range(2))
async def handle(request: Request, context: RequestContext) -> Message:
    metadata = context.broker.metadata
    wanted = request.body.endpoint_type if request.api_version >= 1 else _BROKERS
    if wanted != _BROKERS:
        code = (
            ErrorCode.UNSUPPORTED_ENDPOINT_TYPE if wanted == _CONTROLLERS else ErrorCode.UNSUPPORTED_VERSION
        )
        return DescribeClusterResponse(
            error_code=code,
            error_message="Only brokers can be described here: no controller has an endpoint of its own.",
            endpoint_type=wanted,
            cluster_id=metadata.cluster_id,
            brokers=[],
        )
    return DescribeClusterResponse(
        endpoint_type=_BROKERS,
        cluster_id=metadata.cluster_id,
        controller_id=metadata.controller_id,
        authorized_operations=(ON_CLUSTERS if request.body.include_cluster_authorized_operations else None),
        brokers=[
            DescribeClusterResponse.DescribeClusterBroker(
                broker_id=each.node_id, host=each.host, port=each.port, rack=each.rack
            )
            for each in metadata.at(context.listener).values()
        ],
    )
