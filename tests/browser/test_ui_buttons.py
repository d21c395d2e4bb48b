"""Every button of the pages is pressed by some test in Chromium."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

from restow.ui.pages.controls import CONFIRMED

_BUTTON = re.compile(r"<button[^<]*?>(?:\"\s+f?\")?([^<]+)</button>")
_ASKED = re.compile(r"_ask\(where, '\w+', '([^']+)'\)")
_NAMED = re.compile(r"\"(?:pause|go on)\", \"([^\"]+)\"")


def buttons() -> set[str]:
    """Return what stands on the buttons, as the modules of the pages say."""
    root = files("restow.ui")
    modules = [root.joinpath("frame.py"), *(each for each in root.joinpath("pages").iterdir())]
    found: set[str] = set()
    for module in modules:
        if not module.name.endswith(".py"):
            continue
        text = module.read_text(encoding="utf-8")
        words = _BUTTON.findall(text)
        assert len(words) == text.count("<button"), f"{module.name}: a button that is not understood"
        found.update(each for each in words if "{" not in each)
        found.update(_ASKED.findall(text), _NAMED.findall(text))
    return found | set(CONFIRMED.values())


def test_every_button_is_pressed() -> None:
    tests = "".join(each.read_text(encoding="utf-8") for each in Path(__file__).parent.glob("*.py"))
    shown = buttons()
    assert {"Enter", "Pause", "Go on", "Undo …", "Run this plan"} < shown
    presses = re.findall(r"click\(\"([^\"]+)\"\)|tab_to\(\"([^\"]+)\"\)", tests)
    pressed = " ".join(word for each in presses for word in each)
    assert [each for each in sorted(shown) if each not in pressed] == []
