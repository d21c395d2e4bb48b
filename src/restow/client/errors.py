"""What can go wrong between us and a cluster."""

from __future__ import annotations

from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode

DENIALS = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    }
)
"""What brokers answer to those who lack an ACL."""


class ClientError(RestowError):
    """Base of what talking to a cluster may raise."""


class Unreachable(ClientError):
    """No broker, or not the one that was meant, answers; or it answers with something else than Kafka."""


class LoginRefused(Unreachable):
    """It answers, and does not let us in. Not to be tried again: that is how accounts get locked."""


class BrokerError(ClientError):
    """A broker answered with an error. `needs` is the ACL that the request wants, told if it was missing."""

    def __init__(self, code: ErrorCode, message: str | None = None, needs: str = "") -> None:
        hint = f"; it needs {needs} (see restow acls)" if needs and code in DENIALS else ""
        super().__init__(f"{code.name}: {message or code.message}{hint}")
        self.code = code

    @classmethod
    def of(cls, code: int, message: str | None = None, needs: str = "") -> BrokerError | None:
        """Return the error of that number, None for none."""
        return cls(ErrorCode.of(code), message, needs) if code else None

    @classmethod
    def check(cls, code: int, message: str | None = None, needs: str = "") -> None:
        """Raise the error of that number, if it is one."""
        if code:
            raise cls(ErrorCode.of(code), message, needs)
