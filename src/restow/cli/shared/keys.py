"""Read single keys from the terminal in the background, without echo and without Enter."""

from __future__ import annotations

import asyncio
import os
import sys
import termios
import tty
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Keys:
    """Calls back with each key until it is closed, and with "" once the keyboard is gone."""

    def __init__(self, pressed: Callable[[str], None]) -> None:
        self._pressed = pressed
        self._keyboard = sys.stdin.fileno()
        self._before = termios.tcgetattr(self._keyboard)
        tty.setcbreak(self._keyboard)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._keyboard, self._read)

    def close(self) -> None:
        """Restore the terminal's settings."""
        self._loop.remove_reader(self._keyboard)
        termios.tcsetattr(self._keyboard, termios.TCSADRAIN, self._before)

    def _read(self) -> None:
        try:
            data = os.read(self._keyboard, 1)
        except OSError:
            data = b""
        self._pressed(data.decode(errors="replace").lower())
