"""The feature prompt: observable appearance in words, put before the edit prompt, with no demographic label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Literal, Protocol

from PIL.Image import Image

from evenedit.core.errors import EvenEditError
from evenedit.core.hashing import digest
from evenedit.core.interfaces import Reply
from evenedit.judges.gemini import GeminiJudge
from evenedit.judges.openai import OpenAIJudge
from evenedit.judges.parsing import UnreadableError, find_objects, storable_text
from evenedit.judges.prompt import ModelPrompt, pixels, text_object
from evenedit.simulation.portraits.portrait import portrait_of
from evenedit.simulation.portraits.traits import Portrait

VERSION = "1"
"""Raised with every change of the extraction's wording or checks."""
OPENING = "Maintain the person's"
"""How a feature prompt begins."""
TRIES = 3
"""Descriptions asked for before the last one is kept with its flags."""
LONGEST = 600
"""Characters of a feature prompt: one or two sentences."""

_DIMENSIONS = {
    "skin_tone": "the shade of the skin and its undertone, as precisely as you would tell a painter",
    "face_shape": "the outline of the face, jaw, chin, cheekbones and forehead",
    "eyes": "shape, colour, lids, spacing",
    "nose": "length, width, bridge and tip",
    "lips": "shape and fullness",
    "hair": "colour, grey included, texture, length, style and hairline",
    "distinctive_features": "lines, moles, freckles, scars, dimples, glasses, facial hair; or: none",
}
PUBLISHED = files(__package__).joinpath("published_extraction.txt").read_text("utf-8").strip()
"""Listing 2 of the paper (arXiv 2602.16149), word for word."""
_PROMPT = "one or two sentences that tell an image editor which visible features to keep, the skin tone among them"
_SYSTEM = (
    "You describe what can be seen of a face so that an image editor can keep it. Describe, never classify: no word "
    "for race, ethnicity, origin or nationality, for gender (pronouns included), or for an age or age group. Say "
    "'the person', and name what is visible instead. Answer with one JSON object and nothing else."
)
_UNKNOWN = re.compile(r"\W*(none|null|unknown|unclear|unspecified|not (visible|specified|clear)|n/?a)?\W*", re.I)
_WORDS = {
    "race, ethnicity or nationality": (
        r"race|races|racial|racially|biracial|multiracial|interracial|ethnic\w*|nationality|heritage|ancestry|descent|"
        r"africans?|afro[ -](?:american|caribbean|latin\w*)|asians?|eurasian|caucasians?|caucasoid|negroid|mongoloid|"
        r"europeans?|nordic|scandinavian|slavic|mediterranean|middle[ -]eastern|arab|arabs|arabic|arabian|persian|"
        r"jewish|hispanics?|latin[oax]s?|latine|mestizo|indigenous|aboriginal|pacific islander|polynesian|americans?|"
        r"british|english|irish|scottish|german|italian|spanish|greek|russian|ukrainian|turkish|iranian|iraqi|israeli|"
        r"egyptian|moroccan|nigerian|kenyan|ethiopian|somali|ghanaian|indians?|pakistani|bangladeshi|nepali|chinese|"
        r"japanese|koreans?|taiwanese|vietnamese|thai|filipin[oa]s?|indonesian|malay|malaysian|mexican|brazilian|"
        r"colombian|cuban|puerto rican|dominican|jamaican|(?:french|dutch)(?! (?:braid|twist|crop|plait))|"
        r"(?:person|people) of colou?r|"
        # Colours of hair and clothes are features; of people they are labels. "Brown skin" is a shade.
        r"(?:black|white|yellow)[ -](?:person|people|individual|adult|man|men|woman|women|male|female|boy|girl|child|"
        r"skin(?! tag)|skinned|complexion|features|face|facial(?! hair))"
    ),
    "gender": (
        r"(?:wo)?m[ae]n(?! bun)|(?:fe)?males?|boys?|girls?|gentlem[ae]n|lady|ladies|guys?|masculin\w*|feminin\w*|manly|"
        r"womanly|boyish|girlish|androgyn\w*|gender\w*|transgender|non-?binary|"
        r"he|she|him|his|her|hers|himself|herself|mr|mrs|ms"
    ),
    "an age or age group": (
        r"young|younger|youngish|youth|youthful|old|older|elder|elders|elderly|senior|middle[ -]aged?|aged|adults?|"
        r"adulthood|teens?|teen-?aged?|teenagers?|adolescen\w*|child|children|childhood|childlike|kids?|toddlers?|infants?|"
        r"bab(?:y|ies)(?![ -](?:hair|fine))|twenties|thirties|forties|fifties|sixties|seventies|eighties|nineties|"
        r"[1-9]0['’]?s|\d+[ -]years?|geriatric|juvenile|mature(?! (?:characteristics|features))"
    ),
}
"""Words that classify a person, by what they tell."""
_LABELS = {kind: re.compile(rf"\b(?:{words})\b", re.I) for kind, words in _WORDS.items()}


@dataclass(frozen=True, slots=True)
class FeaturePrompt:
    """What to keep, in one or two sentences, and the seven dimensions it was made from."""

    text: str
    """Empty where no description came."""
    dimensions: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    """What is still wrong with it after it was asked for again; none if all is well."""


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
            raise EvenEditError("the simulated extractor describes drawn portraits only; this source is not one")
        d = _describe(portrait)
        text = (
            f"Maintain the person's {d['skin_tone']} skin tone, {d['face_shape']} face, {d['eyes']} eyes, "
            f"{d['nose']} nose, {d['lips']} lips and {d['hair']} hair."
        )
        return FeaturePrompt(text, d)


class VLMExtractor:
    """Asks a vision-language model, blind; asks again where the description classifies the person."""

    remote = True

    def __init__(
        self,
        *,
        provider: Literal["openai", "gemini"],
        model: str,
        temperature: float | None = None,
        image_size: int = 1024,
        base_url: str | None = None,
        api_key_env: str | None = None,
        timeout: float = 120,
        attempts: int = 5,
        prompt: Literal["default", "published"] = "default",
    ) -> None:
        if prompt not in ("default", "published"):
            raise EvenEditError(f"setting 'prompt' is '{prompt}'; it must be 'default' or 'published'")
        self.prompt = prompt
        """The words it is asked with: our own, or the paper's."""
        kinds: dict[str, type[OpenAIJudge | GeminiJudge]] = {"openai": OpenAIJudge, "gemini": GeminiJudge}
        if provider not in kinds:
            raise EvenEditError(f"setting 'provider' is '{provider}'; it must be 'openai' or 'gemini'")
        self.words: Callable[[ModelPrompt, int], str | Reply] = lambda ask, _number: self.model.ask(ask)
        """How the model is asked for the words of one try, by its number: a run puts its budget and cache here."""
        self.model = kinds[provider](
            model=model,
            temperature=temperature,
            image_size=image_size,
            base_url=base_url,
            api_key_env=f"{provider.upper()}_API_KEY" if api_key_env is None else api_key_env,
            timeout=timeout,
            attempts=attempts,
        )

    @property
    def tokens(self) -> dict[str, int]:
        """Tokens used so far, by the provider's own count."""
        return self.model.tokens

    def missing(self) -> list[str]:
        """List what is needed to use it and not installed."""
        return self.model.missing()

    def check(self) -> None:
        """Raise an error if the key or the model is not accepted."""
        self.model.check()

    def extract(self, image: Image) -> FeaturePrompt:
        """Describe a portrait; flagged, and without text where none came, if no try was free of problems."""
        picture = pixels(image, self.model.image_size)
        feature, problems = FeaturePrompt(""), ""
        for number in range(TRIES):
            answered = self.words(_describe_request(picture, problems, self.prompt), number)
            if isinstance(answered, Reply):
                return FeaturePrompt("", flags=(f"{answered.status}: {answered.reason}",))
            feature, problems = _read(answered)
            if not problems:
                break
        return feature


def _describe_request(picture: bytes, problems: str, prompt: str) -> ModelPrompt:
    fields = _DIMENSIONS | {"identity_prompt": f'{_PROMPT}; it starts with "{OPENING}"'}
    if prompt == "published":
        listing = PUBLISHED + (f"\n\nAn earlier description could not be used: {problems}." if problems else "")
        return ModelPrompt("Answer with one JSON object and nothing else.", (picture, listing), text_object(fields))
    form = ["Describe the person in the image as a JSON object with these texts, in this order:"]
    form += [f'"{name}": {note}' for name, note in fields.items()]
    if problems:
        form.append(f"An earlier description could not be used: {problems}. Avoid this.")
    return ModelPrompt(_SYSTEM, ("Image 1", picture, "\n".join(form)), text_object(fields))


def _read(text: str) -> tuple[FeaturePrompt, str]:
    """Return the description with its flags, and its problems in words for the model."""
    names = [*_DIMENSIONS, "identity_prompt"]
    try:
        answered, *others = find_objects(text, names)
        if any(other != answered for other in others):
            raise UnreadableError(f"{1 + len(others)} answers that differ")
        if absent := [name for name in names if not isinstance(answered.get(name), str)]:
            raise UnreadableError(f"{', '.join(absent)}: not there, or not a text")
    except UnreadableError as problem:
        return FeaturePrompt("", flags=(f"unparseable: {problem}",)), f"it was unreadable ({problem})"
    texts = {name: storable_text(" ".join(answered[name].split())) for name in names}
    prompt = texts.pop("identity_prompt").replace("’", "'")
    shade = re.split(r"\W", texts["skin_tone"])[0]  # a bare colour as the skin tone is a label too
    labels = label_words(*texts.values(), prompt, f"{shade} skin")
    note = [f"it has words for {kind}" for kind in labels]
    flags = [f"words for {kind}: {', '.join(matches)}" for kind, matches in labels.items()]
    form = list(_form_problems(prompt, texts["skin_tone"]))
    return FeaturePrompt(prompt, texts, (*flags, *form)), "; ".join([*note, *form])


def _form_problems(prompt: str, skin_tone: str) -> Iterator[str]:
    if _UNKNOWN.fullmatch(skin_tone):
        yield "the skin tone is missing"
    if not re.search(r"\b(skin|complexion)\b", prompt, re.I):
        yield "identity_prompt does not name the skin tone"
    if not prompt.startswith(OPENING):
        yield f'identity_prompt does not start with "{OPENING}"'
    if len(prompt) > LONGEST:
        yield "identity_prompt is too long"


def label_words(*texts: str) -> dict[str, list[str]]:
    """Return the words that classify a person, in lower case, by kind; empty if there are none."""
    words_by_kind = {
        kind: sorted({m.group().lower() for text in texts for m in words.finditer(text)})
        for kind, words in _LABELS.items()
    }
    return {kind: words for kind, words in words_by_kind.items() if words}


def extractor_id(kind: str, settings: Mapping[str, object]) -> str:
    """Return an id of an extractor, its wording and its settings."""
    return f"{kind}-{digest([VERSION, dict(settings)])[:8]}"


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
