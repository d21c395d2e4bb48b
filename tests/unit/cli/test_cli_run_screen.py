"""The screen of a run while a broker does not answer."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from restow.cli.runs import screen as screens
from restow.cli.runs.screen import Screen

if TYPE_CHECKING:
    import pytest


def show_while(screen: Screen, silent: dict[int, float], shown: asyncio.Event) -> None:
    async def main() -> None:
        with screen.shown(lambda: silent):
            async with asyncio.timeout(120):
                await shown.wait()

    asyncio.run(main())


def test_screen_names_a_broker_that_does_not_answer_and_stays_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that has had a request for a moment only is not named."""
    monkeypatch.setattr(screens, "_TICK_S", 0.01)
    monkeypatch.setattr(screens, "can_ask", lambda *, as_json: not as_json)
    drawn: list[str] = []
    silent, enough = {3: 4.2, 1: 0.1}, asyncio.Event()

    def draw(told: dict[int, float]) -> str:
        drawn.append(line := silent_line(told))
        silent[3] += 1
        if len(drawn) == 3:
            enough.set()
        return line

    silent_line = screens.silent_line
    monkeypatch.setattr(screens, "silent_line", draw)
    show_while(Screen(as_json=False), silent, enough)
    assert drawn[:3] == [f"broker 3 has not answered for {s} s" for s in (4, 5, 6)]


def test_piped_run_tells_once_of_a_broker_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(screens, "_TICK_S", 0.01)
    ticks, enough = [], asyncio.Event()

    class Silent(dict[int, float]):
        def items(self) -> list[tuple[int, float]]:  # type: ignore[override]
            ticks.append(1)
            if len(ticks) == 5:
                enough.set()
            return [(3, 4.2), (1, 0.1)]

    show_while(Screen(as_json=True), Silent(), enough)
    told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [{**each, "at_ms": 0} for each in told] == [
        {"at_ms": 0, "event": "no answer", "broker": 3, "seconds": 4.2}
    ]
