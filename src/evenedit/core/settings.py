"""Settings of plug-ins: what a class takes over from its bases, and checks of single values."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, ClassVar

from evenedit.core.errors import EvenEditError


class InheritsSettings:
    """Its subclasses write down only the settings that are new or have another default, and pass on the rest.

        class Base(InheritsSettings):
            def __init__(self, *, model: str, steps: int = 50, device: str = "auto") -> None: ...

        class Tiny(Base):
            def __init__(self, *, steps: int = 4, strength: float = 0.5, **shared: Any) -> None:
                super().__init__(steps=steps, **shared)

    `inspect.signature(Tiny)` is `(*, model, steps=4, strength=0.5, device="auto")`: it names every setting, so the
    plug-in's settings can be checked and listed. A new setting stands behind the one that is written before it.
    """

    __signature__: ClassVar[inspect.Signature]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__signature__ = inspect.Signature(_settings(cls))


def _settings(cls: type) -> list[inspect.Parameter]:
    """Return all settings of a class, following `**shared` from one `__init__` to the next."""
    settings: list[inspect.Parameter] = []
    for base in reversed(cls.__mro__[:-1]):  # without `object`
        if "__init__" in vars(base):
            _self, *declared = inspect.signature(vars(base)["__init__"]).parameters.values()
            settings = _merged(settings, declared)
    return settings


def _merged(inherited: list[inspect.Parameter], declared: list[inspect.Parameter]) -> list[inspect.Parameter]:
    """Own settings alone, or in place of `**shared` also the inherited ones."""
    written = [p for p in declared if p.kind is not p.VAR_KEYWORD]
    merged = list(inherited) if written != declared else []
    place = 0
    for setting in written:
        names = [p.name for p in merged]
        if setting.name in names:
            place = names.index(setting.name)
            merged[place] = setting
        else:
            merged.insert(place, setting)
        place += 1
    return merged


def choice(name: str, value: Any, *allowed: Any) -> Any:
    """Return the value of a setting that must be one of these."""
    if value not in allowed or type(value) not in {type(a) for a in allowed}:
        words = ", ".join("absent" if a is None else str(a).lower() if isinstance(a, bool) else a for a in allowed)
        raise EvenEditError(f"setting '{name}' is {value!r}; allowed: {words}")
    return value


def text(name: str, value: Any) -> str:
    """Return the value of a setting that must be a text, not an empty one."""
    if not isinstance(value, str) or not value:
        raise EvenEditError(f"setting '{name}' is {value!r}; it must be a text")
    return value


def count(name: str, value: Any, least: int = 1) -> int:
    """Return the value of a setting that must be a whole number."""
    if type(value) is not int or value < least:
        raise EvenEditError(f"setting '{name}' is {value!r}; it must be a whole number, {least} or more")
    return value


def number(name: str, value: Any) -> float:
    """Return the value of a setting that must be a finite number, not below 0."""
    if type(value) not in (int, float) or not 0 <= value < math.inf:
        raise EvenEditError(f"setting '{name}' is {value!r}; it must be a number, 0 or more")
    return float(value)


def table(name: str, value: Any) -> dict[str, Any]:
    """Return the value of a setting that must be a table; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise EvenEditError(f"setting '{name}' is {value!r}; it must be a table such as {{ name = value }}")
    return dict(value)
