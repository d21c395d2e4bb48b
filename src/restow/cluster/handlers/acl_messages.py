"""ACLs in requests and responses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from restow.cluster.security.acls import (
    AclEntry,
    AclFilter,
    AclOperation,
    AclPattern,
    AclPatternType,
    AclPermission,
    AclResource,
    InvalidAcl,
)
from restow.cluster.security.authorizer import checked

if TYPE_CHECKING:
    from restow.wire.messages import Message

NO_AUTHORIZER = "No Authorizer is configured on the broker"
_FIRST_WITH_PATTERNS = 1


def filter_of(body: Message, version: int) -> AclFilter:
    """Return the filter in a request, or in one of its elements. Raises InvalidAcl."""
    number = body.pattern_type_filter if version >= _FIRST_WITH_PATTERNS else AclPatternType.LITERAL
    try:
        return AclFilter(
            AclResource(body.resource_type_filter),
            body.resource_name_filter,
            AclPatternType(number),
            body.principal_filter,
            body.host_filter,
            AclOperation(body.operation),
            AclPermission(body.permission_type),
        )
    except ValueError as error:
        raise InvalidAcl(f"the filter has an unknown element: {error}") from error


def acl_of(creation: Message, version: int) -> tuple[AclPattern, AclEntry]:
    """Return the ACL to create. Raises InvalidAcl."""
    number = creation.resource_pattern_type if version >= _FIRST_WITH_PATTERNS else AclPatternType.LITERAL
    try:
        pattern = AclPattern(
            AclResource(creation.resource_type), creation.resource_name, AclPatternType(number)
        )
        operation, permission = AclOperation(creation.operation), AclPermission(creation.permission_type)
    except ValueError as error:
        raise InvalidAcl(f"the ACL has an unknown element: {error}") from error
    if operation is AclOperation.ANY or permission is AclPermission.ANY:
        raise InvalidAcl("an ACL needs an operation and a permission")
    if not all(creation.principal.partition(":")[::2]):
        raise InvalidAcl("the principal of an ACL must be TYPE:NAME, like User:alice")
    return checked(pattern), AclEntry(creation.principal, creation.host, operation, permission)
