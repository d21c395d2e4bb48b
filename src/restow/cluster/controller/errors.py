"""Errors of the controller. Each carries the error code for the client."""

from __future__ import annotations

from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode


class ControllerError(RestowError):
    """A request that cannot be carried out: the error code and a message."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class NotController(ControllerError):
    """This broker is not the controller, or no longer is."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NOT_CONTROLLER, message)


class Deposed(NotController):
    """A later controller was elected, so the write was refused. Nothing that this one decides counts."""
