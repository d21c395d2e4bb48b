"""The log of py4j stays off the terminal while a session is interrupted."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from restow.pipeline.session import _hush_py4j

if TYPE_CHECKING:
    import pytest


def test_py4j_loggers_are_silent_during_a_session_only(caplog: pytest.LogCaptureFixture) -> None:
    own = logging.getLogger("py4j.clientserver")
    with ExitStack() as session:
        _hush_py4j(session)
        own.error("while it lasts")
        logging.getLogger("restow").error("ours")
    own.error("afterwards")
    assert caplog.messages == ["ours", "afterwards"]
