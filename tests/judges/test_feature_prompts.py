"""The feature prompt: seven visible dimensions in words, asked for blind, and no word that classifies a person."""

import json
from typing import Any

import pytest

from evenedit.core.errors import EvenEditError, Failed, Failure
from evenedit.judges.feature_prompts import (
    LONGEST,
    OPENING,
    TRIES,
    FeaturePrompt,
    SimulatedExtractor,
    VLMExtractor,
    label_words,
)
from evenedit.simulation.portraits.drawn import Drawn
from tests.support.calls import Naps
from tests.support.judging import CONDITIONS, GENDERS, LABELS, chunks, words
from tests.support.provider import server as spoken
from tests.support.provider.server import FakeProvider

GOOD = {
    "skin_tone": "deep brown with warm undertones",
    "face_shape": "oval, soft jaw",
    "eyes": "almond-shaped, dark brown",
    "nose": "broad with a rounded tip",
    "lips": "full",
    "hair": "black and white hair, tightly coiled, cropped",
    "distinctive_features": "lines around the eyes, a short white beard, black-rimmed glasses",
}
TEXT = f"{OPENING} deep brown skin with warm undertones, oval face and cropped black hair."
PORTRAIT = next(Drawn(size=64, seed=3, only={"race": ["Black"], "gender": ["Male"], "age": ["70plus"]}).portraits())[3]


@pytest.fixture(params=["openai", "gemini"])
def extractor(request: pytest.FixtureRequest, wire: FakeProvider) -> VLMExtractor:
    return make(request.param, wire)


def make(provider: Any, wire: FakeProvider, **settings: Any) -> VLMExtractor:
    built = VLMExtractor(
        provider=provider, model="m", base_url=getattr(wire, provider), image_size=32, timeout=20, **settings
    )
    built.model.provider.sleep = Naps()
    return built


def said(**changes: Any) -> str:
    return json.dumps({**GOOD, "identity_prompt": TEXT, **changes})


# -- asking ----------------------------------------------------------------------------------------------------


def test_a_good_description_is_taken_as_it_is(wire: FakeProvider, extractor: VLMExtractor):
    wire.will(spoken.says(said()))
    assert extractor.extract(PORTRAIT) == FeaturePrompt(TEXT, GOOD)
    assert len(wire.seen) == 1
    assert extractor.tokens == {"input": 100, "output": 23}
    assert extractor.missing() == []


def test_a_fenced_description_with_a_typographic_apostrophe_is_taken(wire: FakeProvider):
    wire.will(spoken.says(f"```json\n{said(identity_prompt=TEXT.replace(chr(39), '’'), extra=1)}\n```"))
    assert make("openai", wire).extract(PORTRAIT) == FeaturePrompt(TEXT, GOOD)


def test_the_model_sees_pixels_and_is_told_nothing_of_the_person(wire: FakeProvider, extractor: VLMExtractor):
    woman = f"{OPENING} brown skin. She is an elderly Nigerian woman."
    wire.will(spoken.says(said(identity_prompt=woman)), spoken.says(said()))
    extractor.extract(PORTRAIT)
    first, second = wire.seen
    for seen in (first, second):  # nor are its own words of the first try sent back
        sent = words(seen.body).replace(OPENING.encode(), b"")
        for pattern in (LABELS, GENDERS, CONDITIONS):
            assert not pattern.search(sent), pattern.search(sent)
        assert b"Nigerian" not in sent
        assert b"drawn" not in sent
        (picture,) = seen.images
        assert set(chunks(picture)) == {b"IHDR", b"IDAT", b"IEND"}
    assert "could not be used" not in first.instruction
    assert "it has words for race, ethnicity or nationality" in second.instruction
    assert "it has words for gender" in second.instruction
    assert "it has words for an age or age group" in second.instruction


@pytest.mark.parametrize(
    ("changes", "flag"),
    [
        ({"hair": "typical African hair"}, "words for race, ethnicity or nationality: african"),
        ({"skin_tone": "Black"}, "words for race, ethnicity or nationality: black skin"),
        ({"distinctive_features": "his beard"}, "words for gender: his"),
        ({"face_shape": "a youthful oval"}, "words for an age or age group: youthful"),
        ({"skin_tone": "unknown"}, "the skin tone is missing"),
        ({"skin_tone": " "}, "the skin tone is missing"),
        ({"identity_prompt": f"{OPENING} oval face."}, "identity_prompt does not name the skin tone"),
        ({"identity_prompt": "Keep the brown skin."}, f'identity_prompt does not start with "{OPENING}"'),
        ({"identity_prompt": TEXT * (LONGEST // len(TEXT) + 1)}, "identity_prompt is too long"),
        ({"eyes": None}, "unparseable: eyes: not there, or not a text"),
        ({"eyes": 3, "lips": ["full"]}, "unparseable: eyes, lips: not there, or not a text"),
    ],
)
def test_a_bad_description_is_asked_for_again_and_flagged_if_it_stays_bad(
    wire: FakeProvider, changes: dict[str, Any], flag: str
):
    extractor = make("gemini", wire)
    wire.will(spoken.says(said(**changes)), spoken.says(said()))
    assert extractor.extract(PORTRAIT).flags == ()
    wire.will(*[spoken.says(said(**changes))] * TRIES)
    feature = extractor.extract(PORTRAIT)
    assert feature.flags == (flag,)
    assert bool(feature.text) != flag.startswith("unparseable")
    assert len(wire.seen) == 2 + TRIES == 5


@pytest.mark.parametrize("text", ["", "A person.", said()[:-5], f"{said()} {said(eyes='blue')}"])
def test_no_description_leaves_no_text(wire: FakeProvider, text: str):
    wire.will(*[spoken.says(text)] * TRIES)
    feature = make("openai", wire).extract(PORTRAIT)
    assert (feature.text, feature.dimensions) == ("", {})
    assert feature.flags[0].startswith("unparseable: ")


def test_a_refusal_is_flagged_and_not_asked_again(wire: FakeProvider):
    wire.will(spoken.refuses("I can't describe people."), spoken.gemini_blocked("SAFETY"))
    refused = make("openai", wire).extract(PORTRAIT)
    assert refused == FeaturePrompt("", flags=("refused: I can't describe people.",))
    assert make("gemini", wire).extract(PORTRAIT).flags == ("refused: prompt blocked, SAFETY",)
    assert len(wire.seen) == 2


def test_a_failure_is_raised(wire: FakeProvider, extractor: VLMExtractor):
    wire.will(*[spoken.server_error] * 5)
    with pytest.raises(Failed) as caught:
        extractor.extract(PORTRAIT)
    assert caught.value.failure is Failure.SERVER


def test_settings_are_checked_and_sent(wire: FakeProvider, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TEAM_KEY", "team")
    wire.will(spoken.says(said()))
    make("openai", wire, temperature=0.3, api_key_env="TEAM_KEY").extract(PORTRAIT)
    assert wire.seen[0].fields["temperature"] == 0.3
    assert wire.seen[0].headers["authorization"] == "Bearer team"
    unknown: Any = "acme"
    with pytest.raises(EvenEditError, match="'provider' is 'acme'"):
        VLMExtractor(provider=unknown, model="m")


# -- words -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "a Black person",
        "black-skinned",
        "white skin",
        "White complexion",
        "East Asian features",
        "EAST-ASIAN eyes",
        "half-asian",
        "Caucasian",
        "Latina",
        "of Middle-Eastern descent",
        "African-American",
        "person of color",
        "Indian",
        "a Korean face",
        "this woman",
        "the man's jaw",
        "men's haircut",
        "her lips",
        "She has",
        "masculine jaw",
        "feminine brows",
        "female",
        "boyish",
        "elderly",
        "middle-aged",
        "in the 30s",
        "mid-twenties",
        "60-year-old",
        "a child",
        "young face",
        "older",
    ],
)
def test_words_that_classify_are_found(text: str):
    assert label_words(text)


@pytest.mark.parametrize(
    "text",
    [
        "black hair",
        "white hair",
        "short black curly hair and white beard",
        "white eyebrows, black eyelashes",
        "white facial hair",
        "black-rimmed glasses",
        "brown skin",
        "deep brown skin tone with warm undertones",
        "fair skin with pink undertones",
        "olive complexion",
        "a small black skin tag",
        "whites of the eyes",
        "a bun, French braid or man bun",
        "baby hairs at the hairline, baby-fine strands",
        "there, where, other, another, the, theme, shell, hero, feather, mantle",
        "traced brows, embraced, bold, golden, folded lids, household",
        "human, manner, germane, romance, emaciated, mended",
        "1920s-style glasses",
        "a Roman nose",
        "polished, oldish",
        "a grace of expression, terraced",
        "agile, aging lines, wrinkles, gray strands",
    ],
)
def test_features_are_not_mistaken_for_labels(text: str):
    assert label_words(text) == {}


def test_the_simulated_extractor_uses_no_such_word():
    for *_, image in Drawn(size=32, seed=5).portraits():
        feature = SimulatedExtractor().extract(image)
        assert label_words(feature.text, *feature.dimensions.values()) == {}
        assert feature.text.startswith(OPENING)
        assert feature.flags == ()
