"""Kafka's error codes as a table."""

from __future__ import annotations

import pytest

from restow.wire.error_codes import ErrorCode


def test_error_code_is_its_number() -> None:
    assert ErrorCode.NOT_CONTROLLER == 41
    assert ErrorCode(41) is ErrorCode.NOT_CONTROLLER
    assert ErrorCode.of(41) is ErrorCode.NOT_CONTROLLER
    assert ErrorCode.NOT_CONTROLLER.retriable
    assert not ErrorCode.INVALID_CONFIG.retriable


@pytest.mark.parametrize("code", [-2, 999])
def test_unknown_number_is_unknown_server_error(code: int) -> None:
    assert ErrorCode.of(code) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_error_codes_are_consecutive_with_distinct_messages() -> None:
    assert [int(error) for error in ErrorCode] == list(range(-1, len(ErrorCode) - 1))
    assert len({error.message for error in ErrorCode}) == len(ErrorCode)
    assert all(error.message for error in ErrorCode)
