"""The feature prompt: observable appearance in words, put before the edit prompt, with no demographic label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from PIL.Image import Image

from evenedit.records import UserError, digest
from evenedit.sources.portrait import Portrait, portrait_of


@dataclass(frozen=True, slots=True)
class FeaturePrompt:
    """What to keep, in one or two sentences, and the seven dimensions it was made from."""

    text: str
    dimensions: Mapping[str, str] = field(default_factory=dict)


class Extractor(Protocol):
    """Describes a portrait. It is blind: it gets the picture and nothing else."""

    def extract(self, image: Image) -> FeaturePrompt:
        """Write the feature prompt of a portrait."""
        ...


class SimulatedExtractor:
    """Describes a drawn portrait from its own parameters. Whatever it touches is SIMULATED."""

    simulated = True

    def extract(self, image: Image) -> FeaturePrompt:
        """Put the drawing parameters into words."""
        portrait = portrait_of(image)
        if portrait is None:
            raise UserError("the simulated extractor describes drawn portraits only; this source is not one")
        d = _describe(portrait)
        text = (
            f"Maintain the person's {d['skin_tone']} skin tone, {d['face_shape']} face, {d['eyes']} eyes, "
            f"{d['nose']} nose, {d['lips']} lips and {d['hair']} hair."
        )
        return FeaturePrompt(text, d)


def extractor_id(kind: str, settings: Mapping[str, object]) -> str:
    """Names an extractor and its settings."""
    return f"{kind}-{digest(dict(settings))[:8]}"


def _describe(p: Portrait) -> dict[str, str]:
    tones = ((30, "very deep brown"), (45, "deep brown"), (60, "medium brown"), (75, "tan"), (85, "light"))
    return {
        "skin_tone": next((name for limit, name in tones if p.skin[0] < limit), "fair"),
        "face_shape": "wide" if p.face_width > 0.6 else "narrow" if p.face_width < 0.4 else "oval",
        "eyes": "large" if p.eye_size > 0.6 else "small" if p.eye_size < 0.4 else "medium-sized",
        "nose": "broad" if p.nose_width > 0.6 else "slender" if p.nose_width < 0.4 else "straight",
        "lips": "full" if p.lip_fullness > 0.6 else "thin" if p.lip_fullness < 0.4 else "medium",
        "hair": f"{'long' if p.hair_length > 0.5 else 'short'} {p.hair_texture}",
        "distinctive_features": "lines around the eyes" if p.years > 50 else "none",
    }
