"""Requests of the group protocol `consumer`: keys 68 and 69, which kafka-python does not have."""

from __future__ import annotations

from restow.wire.between_brokers import define

ConsumerGroupHeartbeatRequest = define("ConsumerGroupHeartbeatRequest")
ConsumerGroupHeartbeatResponse = define("ConsumerGroupHeartbeatResponse")
ConsumerGroupDescribeRequest = define("ConsumerGroupDescribeRequest")
ConsumerGroupDescribeResponse = define("ConsumerGroupDescribeResponse")
