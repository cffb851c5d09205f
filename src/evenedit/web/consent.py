"""The consent page: the survey's own words, what the study file adds, and duration and pay as they are planned."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from evenedit.config.study_file import EthicsSection, SurveySection
from evenedit.core.errors import EvenEditError
from evenedit.survey.consent import FACTS, ConsentText, purpose, translation
from evenedit.survey.questionnaire import platform_questions


@dataclass(frozen=True, slots=True)
class ConsentSheet:
    """A consent page in one language."""

    facts: tuple[tuple[str, str], ...]
    """Titles and values: institution, investigator, contact, protocol."""
    parts: tuple[tuple[str, Markup], ...]
    """Titles and texts."""
    text: ConsentText
    """The same as plain text, which is stored with each consent."""


def sheet(section: SurveySection, folder: Path, words: dict[str, Any], language: str) -> ConsentSheet:
    """Return the consent page in a language; `words` are the survey's texts in it."""
    w, ethics = words["consent"], section.ethics
    facts = tuple((w[f"{name}_title"], getattr(ethics, name)) for name in FACTS if getattr(ethics, name))
    plan = _plan(section, w)
    if file := next((file for code, file in ethics.pages.items() if code == language), ""):
        parts = [
            ("", _markdown(folder / file, _blanks(section))),
            (w["time_title"], _paragraphs(plan)),
            (w["data_title"], _paragraphs(*_dates(ethics, w))),
        ]
    else:
        parts = _own_parts(section, words, language, plan)
    sections = tuple((title, text) for title, text in parts if text)
    plain = [f"{title}: {value}" for title, value in facts]
    plain += [f"{title}\n{Markup(text).striptags()}".strip() for title, text in sections]
    plain += [w["adult"], w["agreed"]]
    platform = platform_questions(section)
    plain += [w["optional"], w["profile"]] if platform else []
    plain += [w["sensitive"]] if any(question.sensitive for question in platform) else []
    return ConsentSheet(facts, sections, ConsentText(language, "\n\n".join(plain)))


def _own_parts(section: SurveySection, words: dict[str, Any], language: str, plan: str) -> list[tuple[str, Markup]]:
    """Return the built-in parts with the additions of the study file."""
    w = words["consent"]
    ethics, first = section.ethics, section.languages[0]
    texts = translation(ethics, language) or (ethics if language == first else None)
    risks, data, support = (texts.risks, texts.data, texts.support) if texts else ("", "", "")
    fields = [words["about"]["fields"][question.id] for question in platform_questions(section)]
    platform = w["platform"].format(fields=", ".join(fields)) if fields else ""
    return [
        (w["purpose_title"], _paragraphs(purpose(ethics, language, first))),
        (w["what_title"], _paragraphs(w["what"])),
        (w["time_title"], _paragraphs(plan)),
        (w["risks_title"], _paragraphs(w["distress"], risks, support)),
        (w["data_title"], _paragraphs(w["data"], data, platform, *_dates(ethics, w))),
        (w["rights_title"], _paragraphs(w["rights"])),
    ]


def _dates(ethics: EthicsSection, w: dict[str, str]) -> tuple[str, str]:
    """Until when ids are kept, and from when on answers may be published, as far as the study file says it."""
    until = w["until"].format(day=ethics.keep_until) if ethics.keep_until else ""
    return until, w["published"].format(day=ethics.published_from) if ethics.published_from else ""


def _plan(section: SurveySection, w: dict[str, str]) -> str:
    """Duration and pay in words, as far as the study file says them."""
    pay = section.pay
    keys = ["pages"]
    keys += ["time"] if pay.says("minutes_per_task") else []
    keys += ["pay" if pay.per_task else "unpaid"] if pay.says("per_task") else []
    return " ".join(w[key] for key in keys).format(**_blanks(section))


def _blanks(section: SurveySection) -> dict[str, str]:
    """Return the values that a text or a Markdown file can name in braces."""
    pay, ethics = section.pay, section.ethics
    return {
        "pages": str(section.items_per_task + section.instructed),
        "minutes": f"{pay.minutes_per_task:.0f}",
        "amount": f"{pay.per_task:.2f}",
        "per_hour": f"{pay.per_task * 60 / pay.minutes_per_task:.2f}",
        "currency": pay.currency,
        "keep_until": ethics.keep_until,
        "published_from": ethics.published_from,
        **{name: getattr(ethics, name) for name in FACTS},
    }


def _paragraphs(*texts: str) -> Markup:
    return Markup("").join(Markup("<p>{}</p>").format(text) for text in texts if text)


def _markdown(path: Path, blanks: dict[str, str]) -> Markup:
    """Return a Markdown file as HTML; HTML inside it is escaped."""
    from markdown_it import MarkdownIt

    try:
        source = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EvenEditError(f"the consent text {path} of [survey.ethics] pages cannot be read: {error}") from None
    for name, value in blanks.items():
        source = source.replace("{" + name + "}", value)
    return Markup(MarkdownIt("commonmark", {"html": False}).render(source))


def contact_of(ethics: EthicsSection) -> Markup:
    """Return the contact, as a link if it is an e-mail address."""
    if "@" in ethics.contact and " " not in ethics.contact:
        return Markup('<a href="mailto:{0}">{0}</a>').format(ethics.contact)
    return escape(ethics.contact)
