"""Every error that Restow raises on purpose.

    RestowError
    ├── InvalidInput                  the input is not valid; nothing was done
    │   ├── InvalidBrokers            no brokers, or a duplicate id
    │   ├── InvalidPartitions         an invalid partition count
    │   ├── InvalidReplicationFactor  a factor below one or above the broker count
    │   ├── InvalidReplicaAssignment  replicas given by hand that Kafka would refuse
    │   ├── RackInformationMissing    some brokers have a rack and some have none
    │   ├── InvalidGroup              invalid members or topics of a consumer group
    │   ├── UnknownAssignor           no assignor of that name
    │   ├── InvalidAddress            an invalid address of a store
    │   └── InvalidDocument           a file with invalid contents
    ├── BrokerFailed                  a broker could not start, or failed
    ├── LakeFailed                    a lake could not be read or written
    └── AssignorFailed                a plugin assignor could not be loaded or gave an invalid answer

A message is a sentence for the person who has to act on it: what is wrong, where, and what to do.
"""

from __future__ import annotations


class RestowError(Exception):
    """The base class, so that a caller can catch all of them."""


class InvalidInput(RestowError, ValueError):
    """The input is not valid. The command line exits with code 2."""


class InvalidBrokers(InvalidInput):
    """No brokers, or the same broker twice."""


class InvalidPartitions(InvalidInput):
    """An invalid number of partitions, or an invalid partition id."""


class InvalidReplicationFactor(InvalidInput):
    """A replication factor below one or above the number of brokers."""


class InvalidReplicaAssignment(InvalidInput):
    """Replicas given by hand that Kafka would refuse."""


class RackInformationMissing(InvalidInput):
    """Rack-aware placement was requested, but some brokers have no rack."""


class InvalidGroup(InvalidInput):
    """An invalid consumer group: a duplicate member, a negative partition count."""


class UnknownAssignor(InvalidInput):
    """No assignor is registered under that name."""


class InvalidAddress(InvalidInput):
    """An address that is not valid."""


class InvalidDocument(InvalidInput):
    """A file whose contents are not valid."""


class BrokerFailed(RestowError):
    """A broker could not start, or ended unexpectedly."""


class LakeFailed(RestowError):
    """A lake could not be read or written."""


class AssignorFailed(RestowError):
    """A plugin assignor could not be loaded, or gave an answer that is not an assignment."""
