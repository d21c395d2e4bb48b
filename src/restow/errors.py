"""Every error Restow raises on purpose.

    RestowError
    ├── InvalidInput                  what was asked for cannot be right; nothing was done
    │   ├── InvalidBrokers            no brokers, or one id twice
    │   ├── InvalidPartitions         a partition count that cannot be
    │   ├── InvalidReplicationFactor  a factor below one or above the broker count
    │   ├── InvalidReplicaAssignment  replicas given by hand that Kafka would refuse
    │   ├── RackInformationMissing    some brokers have a rack and some have none
    │   ├── InvalidGroup              members or topics of a consumer group that cannot be
    │   ├── UnknownAssignor           no assignor of that name
    │   ├── InvalidAddress            the address of a store that cannot be
    │   └── InvalidDocument           a file that does not say what it should
    ├── BrokerFailed                  a broker could not begin, or could not go on
    ├── LakeFailed                    samples could not be read, or what came of them not be written
    └── AssignorFailed                a plugged-in assignor could not be loaded or broke its promise

A message is a sentence for the person who has to act on it: what is wrong, where, and what to do.
"""

from __future__ import annotations


class RestowError(Exception):
    """Base of all of them, so that a caller can catch the whole family."""


class InvalidInput(RestowError, ValueError):
    """The input cannot be right. The command line answers it with exit code 2."""


class InvalidBrokers(InvalidInput):
    """No brokers at all, or the same broker twice."""


class InvalidPartitions(InvalidInput):
    """A number of partitions, or a partition id, that cannot be."""


class InvalidReplicationFactor(InvalidInput):
    """A replication factor below one or above the number of brokers."""


class InvalidReplicaAssignment(InvalidInput):
    """Replicas given by hand that Kafka would refuse."""


class RackInformationMissing(InvalidInput):
    """Rack-aware placement was asked for, but some brokers have no rack."""


class InvalidGroup(InvalidInput):
    """A consumer group that cannot be: a member twice, a negative partition count."""


class UnknownAssignor(InvalidInput):
    """No assignor is registered under that name."""


class InvalidAddress(InvalidInput):
    """An address that names no place."""


class InvalidDocument(InvalidInput):
    """A file that cannot be read as what it should be."""


class BrokerFailed(RestowError):
    """A broker could not begin, or ended without having been told to."""


class LakeFailed(RestowError):
    """A lake could not be read or written."""


class AssignorFailed(RestowError):
    """A plugged-in assignor could not be loaded, or gave an answer that is not an assignment."""
