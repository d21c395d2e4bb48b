"""ApiVersions: return the supported requests and their versions.

Behaviour: clients send it first, in their newest version. An unsupported one is answered in version 0 with
UNSUPPORTED_VERSION and the range for this key, so that the client can ask again.
Versions: 3 adds the client's name and version, which are checked.
Not supported: features.
"""

from __future__ import annotations

import re
from functools import lru_cache

from restow.cluster.handlers.registry import (
    HANDLERS,
    Answer,
    Request,
    RequestContext,
    handles,
    served_versions,
)
from restow.wire.codec import API_VERSIONS
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import ApiVersionsResponse, Message
from restow.wire.writer import writer_of

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.\-]*[a-zA-Z0-9])?", re.ASCII)
_FIRST_WITH_SOFTWARE = 3


@handles(API_VERSIONS, range(5))
async def handle(request: Request, _: RequestContext) -> Answer:
    body = request.body
    if request.api_version >= _FIRST_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(body.client_software_name) and _SOFTWARE.fullmatch(body.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST, api_keys=[])
    return (_encoded(request.api_version, tuple(served_versions().items())),)


@lru_cache(maxsize=8)
def _encoded(version: int, served: tuple[tuple[int, range], ...]) -> bytes:
    """Return the response, which every client asks for as it connects."""
    entries = [_entry(key, versions) for key, versions in served]
    return writer_of(ApiVersionsResponse, version)(ApiVersionsResponse(api_keys=entries))


def refusal() -> Message:
    """Return the version 0 response to an unsupported version."""
    return ApiVersionsResponse(
        error_code=ErrorCode.UNSUPPORTED_VERSION,
        api_keys=[_entry(API_VERSIONS, HANDLERS[API_VERSIONS].versions)],
    )


def _entry(api_key: int, served: range) -> Message:
    return ApiVersionsResponse.ApiVersion(api_key=api_key, min_version=served[0], max_version=served[-1])
