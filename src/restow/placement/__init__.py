"""Where replicas live: Kafka's placement of new topics and added partitions, and a judge of the outcome.

Pure functions on numpy. `place` and `create_partitions` decide, `parse_by_hand` reads what a person
decided, and `evaluate` says how good any of it is.
"""

from restow.model import Broker
from restow.placement.by_hand import parse_by_hand
from restow.placement.create_partitions import create_partitions
from restow.placement.evaluate import BrokerLoad, Evaluation, RackSpread, evaluate
from restow.placement.modes import RackMode
from restow.placement.place import place

__all__ = [
    "Broker",
    "BrokerLoad",
    "Evaluation",
    "RackMode",
    "RackSpread",
    "create_partitions",
    "evaluate",
    "parse_by_hand",
    "place",
]
