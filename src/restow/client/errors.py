"""What can go wrong between us and a cluster."""

from __future__ import annotations

from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode


class ClientError(RestowError):
    """Base of what talking to a cluster may raise."""


class Unreachable(ClientError):
    """No broker, or not the one that was meant, answers; or it answers with something else than Kafka."""


class LoginRefused(Unreachable):
    """It answers, and does not let us in. Not to be tried again: that is how accounts get locked."""


class BrokerError(ClientError):
    """A broker answered with an error."""

    def __init__(self, code: ErrorCode, message: str | None = None) -> None:
        super().__init__(f"{code.name}: {message or code.message}")
        self.code = code

    @classmethod
    def of(cls, code: int, message: str | None = None) -> BrokerError | None:
        """The error of that number, None for none."""
        return cls(ErrorCode.of(code), message) if code else None

    @classmethod
    def check(cls, code: int, message: str | None = None) -> None:
        """Raise the error of that number, if it is one."""
        if code:
            raise cls(ErrorCode.of(code), message)
