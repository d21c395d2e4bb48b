"""AlterUserScramCredentials: set or delete SCRAM credentials, which are stored where Kafka stores them.

Behaviour:
- All changes of one user succeed or fail together.
- The client sends a salted and hashed password; only the keys that follow from it are stored.
- Every broker answers, where Kafka's would only as the controller. A login reads the store, so a change holds
  at once.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from restow.cluster.handlers.registry import Request, RequestContext, handles
from restow.cluster.security.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
)
from restow.errors import RestowError
from restow.wire.error_codes import ErrorCode
from restow.wire.messages import AlterUserScramCredentialsResponse, Message

if TYPE_CHECKING:
    from collections.abc import Sequence

_RESULT = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


class _Refused(RestowError):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


class _Change(NamedTuple):
    mechanism: int
    upsertion: Message | None
    """None for a deletion."""


@handles(51, range(1))
async def handle(request: Request, context: RequestContext) -> Message:
    changes: defaultdict[str, list[_Change]] = defaultdict(list)
    for each in request.body.deletions:
        changes[each.name].append(_Change(each.mechanism, None))
    for each in request.body.upsertions:
        changes[each.name].append(_Change(each.mechanism, each))
    results = []
    for user, wanted in changes.items():
        try:
            await _alter(context, user, wanted)
        except _Refused as refused:
            results.append(_RESULT(user=user, error_code=refused.code, error_message=str(refused)))
        else:
            results.append(_RESULT(user=user, error_code=0))
    return AlterUserScramCredentialsResponse(results=results)


async def _alter(context: RequestContext, user: str, wanted: Sequence[_Change]) -> None:
    if not user:
        raise _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    checked = {_mechanism(each.mechanism): _credential(each) for each in wanted}
    if len(checked) < len(wanted):
        raise _Refused(
            ErrorCode.DUPLICATE_RESOURCE,
            "A user credential cannot be altered twice in the same request",
        )

    def change(credentials: dict[ScramMechanism, ScramCredential]) -> None:
        for mechanism, credential in checked.items():
            if credential is not None:
                credentials[mechanism] = credential
            elif credentials.pop(mechanism, None) is None:
                raise _Refused(
                    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
                )

    await context.broker.users.alter(user, change)


def _mechanism(number: int) -> ScramMechanism:
    try:
        return ScramMechanism(number)
    except ValueError:
        raise _Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism") from None


def _credential(change: _Change) -> ScramCredential | None:
    given = change.upsertion
    if given is None:
        return None
    if given.iterations < MIN_ITERATIONS:
        raise _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if given.iterations > MAX_ITERATIONS:
        raise _Refused(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    return ScramCredential.of_salted(
        _mechanism(change.mechanism), given.salted_password, given.salt, given.iterations
    )
