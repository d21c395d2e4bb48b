"""The values that every part of Restow speaks in: frozen, slotted, without behaviour of their own."""

from restow.model.broker import Broker
from restow.model.group import Member
from restow.model.ids import BrokerId, Rack, TopicPartition

__all__ = ["Broker", "BrokerId", "Member", "Rack", "TopicPartition"]
