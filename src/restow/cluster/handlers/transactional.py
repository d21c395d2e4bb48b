"""What handlers of transactional requests share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.wire.error_codes import ErrorCode

if TYPE_CHECKING:
    from restow.cluster.handlers.registry import Request

FIRST_WITH_FENCED = 2


def fenced_as_of(request: Request, code: ErrorCode, first_version: int = FIRST_WITH_FENCED) -> ErrorCode:
    """Return the error code; versions before the first with PRODUCER_FENCED have another one for it."""
    if code is ErrorCode.PRODUCER_FENCED and request.api_version < first_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
