"""The program under Apache's name."""

from __future__ import annotations

import sys

import pytest

from restow import __version__
from restow.cli.reassign import main


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (["--version"], 0, f"restow {__version__}\n", ""),
        (["--list"], 1, "", "Please specify --bootstrap-server\n"),
        ([], 1, "", "Command must include exactly one action"),
        (["--list", "--bootstrap-server", "no address"], 1, "Error: bootstrap servers: 'no address'", ""),
        (["--help"], 0, "Usage:", ""),
    ],
)
def test_it_answers(
    words: list[str],
    code: int,
    out: str,
    err: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["kafka-reassign-partitions", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr()
    assert ended.value.code == code
    assert said.out.startswith(out)
    assert said.err.startswith(err)
