"""The errors of a client."""

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
"""The error codes for a missing ACL."""


class ClientError(RestowError):
    """The base of all errors of a client."""


class Unreachable(ClientError):
    """No broker, or not the right one, answers; or the answer is not Kafka's protocol."""

    retriable = False
    """Whether the same request may succeed a little later."""
    down = False
    """Whether nobody listens at the broker's address, or did not a moment ago."""


class LoginRefused(Unreachable):
    """The broker answers, but refuses the login. Do not retry: that is how accounts get locked."""


class BrokerError(ClientError):
    """A broker answered with an error. `needs` is the ACL for the request, shown if it was missing."""

    def __init__(self, code: ErrorCode, message: str | None = None, needs: str = "") -> None:
        hint = f"; it needs {needs} (see restow acls)" if needs and code in DENIALS else ""
        super().__init__(f"{code.name}: {message or code.message}{hint}")
        self.code = code

    @classmethod
    def of(cls, code: int, message: str | None = None, needs: str = "") -> BrokerError | None:
        """Return the error of that code, None for none."""
        return cls(ErrorCode.of(code), message, needs) if code else None

    @classmethod
    def check(cls, code: int, message: str | None = None, needs: str = "") -> None:
        """Raise the error of that code, if it is one."""
        if code:
            raise cls(ErrorCode.of(code), message, needs)
