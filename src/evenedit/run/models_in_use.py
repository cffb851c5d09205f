"""The remote models of a study, and the registry's notices about them before money is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from evenedit.config.study_file import StudyFile
from evenedit.core import plugins
from evenedit.providers.prices import Prices

OTHER_ENDPOINTS = ("base_url", "server", "url")
"""Settings that lead to another endpoint than the provider's own: what it serves, the registry cannot know."""


def models_in_use(file: StudyFile) -> Iterator[tuple[str, str]]:
    """Yield who uses which model at the provider itself: editors, judges and extractors."""
    used = [("editors", e.id, e.plugin, e.settings) for e in file.sections.editors]
    used += [("judges", j.id, j.kind, j.settings) for j in file.sections.judges]
    section = file.sections.experiments.mitigation
    used += [("extractors", f"extractor {p.kind}", p.kind, p.settings) for p in (section.extractors if section else ())]
    for group, who, kind, settings in used:
        model = _at_the_provider(group, kind, settings)
        if model is not None:
            yield who, model


def model_notices(file: StudyFile, prices: Prices, today: date | None = None) -> list[str]:
    """Return notices about models that are or will be retired, and about prices that end."""
    known = ((who, prices.models.get(model)) for who, model in models_in_use(file))
    return [f"{who}: {notice}" for who, model in known if model for notice in model.notices(today or date.today())]


def price_notices(file: StudyFile, prices: Prices) -> list[str]:
    """Return notes on what the prices of the editors do not include."""
    notes = []
    for section in file.sections.editors:
        name = _at_the_provider("editors", section.plugin, section.settings)
        model = prices.models.get(name) if name else None
        if model and model.get("price", "note") and prices.edit(section.plugin, section.settings) is not None:
            notes.append(f"{section.id}: the price of an edit: {model.get('price', 'note')}")
    return notes


def _at_the_provider(group: str, kind: str, settings: Mapping[str, Any]) -> str | None:
    if not plugins.is_remote(group, kind):
        return None
    used = {**plugins.defaults(group, kind), **settings}
    if any(used.get(setting) for setting in OTHER_ENDPOINTS):
        return None
    return str(used["model"]) if used.get("model") else None
