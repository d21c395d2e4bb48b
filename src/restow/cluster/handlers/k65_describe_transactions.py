"""DescribeTransactions: state, producer and partitions of transactional ids."""

from __future__ import annotations

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.model import by_topic
from restow.wire.messages import DescribeTransactionsResponse, Message

_State = DescribeTransactionsResponse.TransactionState


@handles(65, range(1))
async def handle(request: Request, context: RequestContext) -> Message:
    described = [context.broker.transactions.describe(each) for each in request.body.transactional_ids]
    return DescribeTransactionsResponse(
        transaction_states=[
            _State(
                error_code=it.error,
                transactional_id=it.transactional_id,
                transaction_state=it.state,
                transaction_timeout_ms=it.timeout_ms,
                transaction_start_time_ms=it.started_ms,
                producer_id=it.producer_id,
                producer_epoch=it.producer_epoch,
                topics=[
                    _State.TopicData(topic=topic, partitions=numbers)
                    for topic, numbers in by_topic(sorted(it.partitions)).items()
                ],
            )
            for it in described
        ]
    )
