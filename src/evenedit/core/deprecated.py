"""Modules that moved: importing from them still works for one release, with a warning that names the new place."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Any


class MovedModule(ModuleType):
    """Stands where a module was; every name it had is fetched from its new home."""

    def __init__(self, name: str, homes: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(name, f"Moved: {name} is kept for one release.")
        self.__path__: list[str] = []
        self._homes = homes

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, new = self._homes[name]
        message = f"{self.__name__}.{name} moved: write 'from {module} import {new}'; the old name goes in 0.3"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return getattr(import_module(module), new)


def stand_in(name: str, homes: Mapping[str, tuple[str, str]]) -> None:
    """Make a module importable under its former name."""
    sys.modules[name] = MovedModule(name, homes)
