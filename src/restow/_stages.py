"""Packages that can be called, as `restow.plan(…)` is `restow.plan.plan(…)`, and names that load late."""

from __future__ import annotations

import inspect
import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class _CallableModule(ModuleType):
    """A package that calls the function of its own name."""

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self._function()(*given, **named)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._function())

    def _function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self, self.__name__.rpartition(".")[2])
        return function


def make_callable(package: str) -> None:
    """Let a package be called. It has to offer a function of its own name."""
    sys.modules[package].__class__ = _CallableModule


def late(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package whose names are imported, each from its module, when asked for."""

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return find
