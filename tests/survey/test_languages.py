"""Participants read everything in their language; a language is one TOML file, and text may run from right to left."""

from dataclasses import replace
from importlib.resources import files

import httpx
import pytest

from evenedit.core.errors import EvenEditError
from evenedit.protocol.prompts import load_prompts
from evenedit.survey.languages import Languages, built_in_texts
from tests.support.web_study import app_of, seated, serving, web_study

ENGLISH = files("evenedit.survey").joinpath("languages", "en.toml").read_text("utf-8")
ARABIC = ENGLISH.replace('name = "English"', 'name = "العربية"\ndirection = "rtl"\nprompts_checked = true', 1)
ARABIC += '\n[prompts]\n"O-01" = "أظهر الشخص مديرا كبيرا."\n"V-05" = "أظهر الشخص بعد ثلاثين عاما."\n'


def with_arabic(folder):
    (folder / "languages").mkdir(parents=True)
    (folder / "languages" / "ar.toml").write_text(ARABIC, "utf-8")
    return folder


def test_every_built_in_prompt_is_in_korean_and_marked_as_unchecked(tmp_path):
    languages = Languages(tmp_path, ["en", "ko"])
    prompts = [p for name in ("diagnostic", "winobias") for p in load_prompts(name)]
    assert len(prompts) == 70
    for prompt in prompts:
        assert any("가" <= letter <= "힣" for letter in languages.requests(prompt)["ko"]), prompt.id
    assert set(built_in_texts("ko")["prompts"]) == {p.id for p in prompts}
    assert {p.occupation for p in prompts if p.occupation} == set(built_in_texts("ko")["roles"])
    assert languages.unchecked() == ["한국어"]
    assert languages.role("nurse", "ko") == "간호사" and languages.role("nurse", "en") == "nurse"


def test_a_prompt_that_says_something_else_under_a_built_in_id_gets_no_built_in_translation(tmp_path):
    prompt = load_prompts("diagnostic")["O-01"]
    languages = Languages(tmp_path, ["en", "ko"])
    assert languages.requests(replace(prompt, text="Paint the person.")) == {}
    own = replace(prompt, text="Paint the person.", translations={"ko": "인물을 그려 주세요."})
    assert languages.requests(own) == {"ko": "인물을 그려 주세요."}


def test_a_prompt_file_may_hold_translations(tmp_path):
    rows = '[[prompts]]\nid = "x"\ntext = "Paint."\ncategory = "own"\ntranslations = { ko = "그려 주세요." }\n'
    (tmp_path / "own.toml").write_text(rows, "utf-8")
    assert load_prompts("own.toml", tmp_path)["x"].translations == {"ko": "그려 주세요."}
    (tmp_path / "own.toml").write_text(rows.replace('{ ko = "그려 주세요." }', "3"), "utf-8")
    with pytest.raises(EvenEditError, match="texts by language"):
        load_prompts("own.toml", tmp_path)


def test_a_language_is_one_file_in_the_studys_folder(tmp_path):
    languages = Languages(with_arabic(tmp_path), ["en", "ar"])
    assert languages.direction("ar") == "rtl" and languages.direction("en") == "ltr"
    assert languages.requests(load_prompts("diagnostic")["O-01"]) == {"ar": "أظهر الشخص مديرا كبيرا."}


def test_a_file_of_a_built_in_language_changes_single_texts(tmp_path):
    (tmp_path / "languages").mkdir()
    (tmp_path / "languages" / "en.toml").write_text('[guide]\nready = "Done reading"\n', "utf-8")
    texts = Languages(tmp_path, ["en"]).texts("en")
    assert texts["guide"]["ready"] == "Done reading" and texts["guide"]["title"] == "How it works"


def test_a_language_that_is_missing_or_incomplete_is_refused_with_what_it_lacks(tmp_path):
    with pytest.raises(EvenEditError, match="'fr' is neither built in"):
        Languages(tmp_path, ["fr"])
    (tmp_path / "languages").mkdir()
    (tmp_path / "languages" / "fr.toml").write_text('name = "français"\n', "utf-8")
    with pytest.raises(EvenEditError, match=r"lacks: about\.agreed"):
        Languages(tmp_path, ["fr"])


def test_pages_run_from_right_to_left_and_the_request_stands_in_the_participants_language(tmp_path):
    study = web_study(with_arabic(tmp_path), languages=["en", "ko", "ar"], surveys=[1])
    with serving(app_of(study)) as base:
        page = httpx.get(base + "/survey/information", headers={"accept-language": "ar-EG, en;q=0.5"}).text
        assert '<html lang="ar" dir="rtl">' in page
        assert '<html lang="en" dir="ltr">' in httpx.get(base + "/survey/information").text
        with seated(base, "reader") as client:
            for language, letters in (("ko", "가힣"), ("en", "")):
                client.get(f"/survey/language/{language}")
                items = [i for i in client.get("/survey/items").json()["items"] if not i["instructed"]]
                told = [item["translation"] for item in items]
                assert all(item["instruction"].isascii() for item in items), "the original stays beside it"
                assert (
                    all(any(letters[0] <= c <= letters[1] for c in text) for text in told) if letters else not any(told)
                )
            assert client.get("/survey/language/ar").url.path == "/survey/task"
            assert 'dir="rtl"' in client.get("/survey/task").text
    study.store.close()
