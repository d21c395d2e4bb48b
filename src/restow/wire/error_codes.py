"""Kafka's error codes as one table: number, name, whether it is retriable, and a message.

Names, numbers and flags are Kafka 3.9's; the messages are our own.
"""

from __future__ import annotations

from enum import IntEnum


class ErrorCode(IntEnum):
    """An error code of the protocol, with `.retriable` and `.message`."""

    retriable: bool
    message: str

    def __new__(cls, code: int, retriable: bool, message: str) -> ErrorCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.retriable = retriable
        member.message = message
        return member

    @classmethod
    def of(cls, code: int) -> ErrorCode:
        """Return the error of that number; an unknown one is UNKNOWN_SERVER_ERROR, as in Kafka."""
        try:
            return cls(code)  # type: ignore[call-arg]
        except ValueError:
            return cls.UNKNOWN_SERVER_ERROR

    UNKNOWN_SERVER_ERROR = (-1, False, "the broker met an error that it did not expect")
    NONE = (0, False, "no error")
    OFFSET_OUT_OF_RANGE = (1, False, "the offset lies outside of what the replica holds")
    CORRUPT_MESSAGE = (2, True, "the batch is damaged: its checksum, size or format is wrong")
    UNKNOWN_TOPIC_OR_PARTITION = (3, True, "this broker does not host that topic and partition")
    INVALID_FETCH_SIZE = (4, False, "the fetch size is invalid")
    LEADER_NOT_AVAILABLE = (5, True, "the partition has no leader while one is being elected")
    NOT_LEADER_OR_FOLLOWER = (6, True, "this broker is not the leader, or not a replica, of that partition")
    REQUEST_TIMED_OUT = (7, True, "the request was not done in the time it was given")
    BROKER_NOT_AVAILABLE = (8, False, "that broker is not available")
    REPLICA_NOT_AVAILABLE = (9, True, "that replica is not available")
    MESSAGE_TOO_LARGE = (10, False, "the batch is larger than the topic accepts")
    STALE_CONTROLLER_EPOCH = (11, False, "the controller that sent this has been replaced")
    OFFSET_METADATA_TOO_LARGE = (12, False, "the metadata of the committed offset is too long")
    NETWORK_EXCEPTION = (13, True, "the connection was lost before the answer came")
    COORDINATOR_LOAD_IN_PROGRESS = (14, True, "the coordinator is still loading the group's state")
    COORDINATOR_NOT_AVAILABLE = (15, True, "the group has no coordinator at the moment")
    NOT_COORDINATOR = (16, True, "this broker is not the group's coordinator")
    INVALID_TOPIC_EXCEPTION = (17, False, "the topic name cannot be used, or clients may not write to it")
    RECORD_LIST_TOO_LARGE = (18, False, "the records together are larger than a segment")
    NOT_ENOUGH_REPLICAS = (19, True, "fewer replicas are in sync than the topic requires")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (
        20,
        True,
        "the batch is written, but to fewer in-sync replicas than the topic requires",
    )
    INVALID_REQUIRED_ACKS = (21, False, "acks must be 0, 1 or -1")
    ILLEGAL_GENERATION = (22, False, "the generation is not the group's current one")
    INCONSISTENT_GROUP_PROTOCOL = (
        23,
        False,
        "the member shares no protocol with the rest of the group, or names none",
    )
    INVALID_GROUP_ID = (24, False, "the group id cannot be used")
    UNKNOWN_MEMBER_ID = (25, False, "the group has no such member")
    INVALID_SESSION_TIMEOUT = (26, False, "the session timeout lies outside of what this broker allows")
    REBALANCE_IN_PROGRESS = (27, False, "the group is rebalancing; the member has to join again")
    INVALID_COMMIT_OFFSET_SIZE = (28, False, "the offset commit is larger than a message may be")
    TOPIC_AUTHORIZATION_FAILED = (29, False, "not allowed for this topic")
    GROUP_AUTHORIZATION_FAILED = (30, False, "not allowed for this group")
    CLUSTER_AUTHORIZATION_FAILED = (31, False, "not allowed for this cluster")
    INVALID_TIMESTAMP = (32, False, "the timestamp lies outside of what the topic accepts")
    UNSUPPORTED_SASL_MECHANISM = (33, False, "this broker does not offer that SASL mechanism")
    ILLEGAL_SASL_STATE = (34, False, "the request does not belong to this stage of authentication")
    UNSUPPORTED_VERSION = (35, False, "this broker does not speak that version of the request")
    TOPIC_ALREADY_EXISTS = (36, False, "a topic of that name exists already")
    INVALID_PARTITIONS = (37, False, "the number of partitions is invalid")
    INVALID_REPLICATION_FACTOR = (
        38,
        False,
        "the replication factor is below one or above the number of brokers",
    )
    INVALID_REPLICA_ASSIGNMENT = (39, False, "the replica assignment is invalid")
    INVALID_CONFIG = (40, False, "the configuration is invalid")
    NOT_CONTROLLER = (41, True, "this broker is not the controller")
    INVALID_REQUEST = (42, False, "the request contradicts itself or the protocol")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, False, "the message format is not supported here")
    POLICY_VIOLATION = (44, False, "the request breaks a policy of this cluster")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, False, "the producer's sequence number does not follow the last one")
    DUPLICATE_SEQUENCE_NUMBER = (46, False, "the producer sent a sequence number that is already written")
    INVALID_PRODUCER_EPOCH = (47, False, "the producer's epoch is older than the one known here")
    INVALID_TXN_STATE = (48, False, "the transaction is in no state for this")
    INVALID_PRODUCER_ID_MAPPING = (49, False, "the producer id does not belong to that transactional id")
    INVALID_TRANSACTION_TIMEOUT = (50, False, "the transaction timeout is longer than this broker allows")
    CONCURRENT_TRANSACTIONS = (51, True, "another operation of this transaction is still running")
    TRANSACTION_COORDINATOR_FENCED = (
        52,
        False,
        "the transaction coordinator that sent this has been replaced",
    )
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, False, "not allowed for this transactional id")
    SECURITY_DISABLED = (54, False, "security features are switched off here")
    OPERATION_NOT_ATTEMPTED = (55, False, "not attempted, because another part of the request had failed")
    KAFKA_STORAGE_ERROR = (56, True, "the log directory has failed")
    LOG_DIR_NOT_FOUND = (57, False, "this broker has no such log directory")
    SASL_AUTHENTICATION_FAILED = (58, False, "authentication failed")
    UNKNOWN_PRODUCER_ID = (59, False, "nothing is known here of that producer id")
    REASSIGNMENT_IN_PROGRESS = (60, False, "the partition is being reassigned")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, False, "delegation tokens are switched off here")
    DELEGATION_TOKEN_NOT_FOUND = (62, False, "there is no such delegation token")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, False, "the delegation token belongs to another principal")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (
        64,
        False,
        "delegation tokens cannot be asked for over this connection",
    )
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, False, "not allowed for this delegation token")
    DELEGATION_TOKEN_EXPIRED = (66, False, "the delegation token has expired")
    INVALID_PRINCIPAL_TYPE = (67, False, "that type of principal is not supported")
    NON_EMPTY_GROUP = (68, False, "the group still has members")
    GROUP_ID_NOT_FOUND = (69, False, "there is no such group")
    FETCH_SESSION_ID_NOT_FOUND = (70, True, "there is no such fetch session")
    INVALID_FETCH_SESSION_EPOCH = (71, True, "the epoch of the fetch session is not the expected one")
    LISTENER_NOT_FOUND = (
        72,
        True,
        "the leader has no listener of the name that this connection came through",
    )
    TOPIC_DELETION_DISABLED = (73, False, "topic deletion is switched off here")
    FENCED_LEADER_EPOCH = (74, True, "the leader epoch is older than the one known here")
    UNKNOWN_LEADER_EPOCH = (75, True, "the leader epoch is newer than the one known here")
    UNSUPPORTED_COMPRESSION_TYPE = (
        76,
        False,
        "that version of the request cannot carry the compression in use",
    )
    STALE_BROKER_EPOCH = (77, False, "the broker epoch is older than the one known here")
    OFFSET_NOT_AVAILABLE = (78, True, "the new leader's high watermark has not caught up yet")
    MEMBER_ID_REQUIRED = (79, False, "the member has to join again with the id it has been given")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, True, "the preferred leader is not available")
    GROUP_MAX_SIZE_REACHED = (81, False, "the group has as many members as it may")
    FENCED_INSTANCE_ID = (82, False, "another member has taken over this static instance id")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, True, "no replica that may lead is available")
    ELECTION_NOT_NEEDED = (84, True, "the leader is already the right one")
    NO_REASSIGNMENT_IN_PROGRESS = (85, False, "the partition is not being reassigned")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, False, "the group is subscribed to the topic")
    INVALID_RECORD = (87, False, "a record breaks the rules of its topic")
    UNSTABLE_OFFSET_COMMIT = (88, True, "offsets are held back until a transaction ends")
    THROTTLING_QUOTA_EXCEEDED = (89, True, "the quota is used up")
    PRODUCER_FENCED = (90, False, "a newer producer has taken over the transactional id")
    RESOURCE_NOT_FOUND = (91, False, "there is no such resource")
    DUPLICATE_RESOURCE = (92, False, "the resource is there already, or was named twice")
    UNACCEPTABLE_CREDENTIAL = (93, False, "the credential cannot be accepted")
    INCONSISTENT_VOTER_SET = (94, False, "the set of voters does not match")
    INVALID_UPDATE_VERSION = (95, False, "the feature cannot be set to that version")
    FEATURE_UPDATE_FAILED = (96, False, "the features could not be updated")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, False, "the forwarded principal cannot be read")
    SNAPSHOT_NOT_FOUND = (98, False, "there is no such snapshot")
    POSITION_OUT_OF_RANGE = (99, False, "the position lies outside of the snapshot")
    UNKNOWN_TOPIC_ID = (100, True, "no topic has that id here")
    DUPLICATE_BROKER_REGISTRATION = (101, False, "the broker id is in use")
    BROKER_ID_NOT_REGISTERED = (102, False, "the broker id is not registered")
    INCONSISTENT_TOPIC_ID = (103, True, "the topic id does not belong to that topic")
    INCONSISTENT_CLUSTER_ID = (104, False, "the cluster id is not this cluster's")
    TRANSACTIONAL_ID_NOT_FOUND = (105, False, "there is no such transactional id")
    FETCH_SESSION_TOPIC_ID_ERROR = (
        106,
        True,
        "the fetch session uses topic ids and the request does not, or the other way round",
    )
    INELIGIBLE_REPLICA = (107, False, "the new ISR names a replica that may not be in it")
    NEW_LEADER_ELECTED = (108, False, "the ISR change went through, and a new leader was elected")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, False, "the offset has moved to tiered storage")
    FENCED_MEMBER_EPOCH = (110, False, "the member's epoch has been fenced")
    UNRELEASED_INSTANCE_ID = (111, False, "another member still holds this static instance id")
    UNSUPPORTED_ASSIGNOR = (112, False, "the group's assignor is not supported")
    STALE_MEMBER_EPOCH = (113, False, "the member's epoch is older than the one known here")
    MISMATCHED_ENDPOINT_TYPE = (114, False, "the request came to an endpoint of another kind")
    UNSUPPORTED_ENDPOINT_TYPE = (115, False, "that kind of endpoint is not supported")
    UNKNOWN_CONTROLLER_ID = (116, False, "there is no such controller")
    UNKNOWN_SUBSCRIPTION_ID = (117, False, "there is no such telemetry subscription")
    TELEMETRY_TOO_LARGE = (118, False, "the telemetry is larger than accepted")
    INVALID_REGISTRATION = (119, False, "the registration cannot be")
    TRANSACTION_ABORTABLE = (120, False, "the transaction has to be aborted")
    INVALID_RECORD_STATE = (121, False, "the record is in no state for this")
    SHARE_SESSION_NOT_FOUND = (122, True, "there is no such share session")
    INVALID_SHARE_SESSION_EPOCH = (123, True, "the epoch of the share session is not the expected one")
    FENCED_STATE_EPOCH = (124, False, "the share group's state has a newer epoch")
    INVALID_VOTER_KEY = (125, False, "the voter's directory id does not match")
    DUPLICATE_VOTER = (126, False, "the voter is there already")
    VOTER_NOT_FOUND = (127, False, "there is no such voter")
    INVALID_REGULAR_EXPRESSION = (128, False, "the regular expression cannot be used")
