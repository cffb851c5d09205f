"""What participants agreed to: each version of the consent page is stored once, and each consent names its version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from evenedit.config.study_file import EthicsSection, EthicsTexts, SurveySection
from evenedit.core.hashing import digest
from evenedit.storage.survey_schema import PREVIEW, consent_texts, consents, participants, profile_consents
from evenedit.storage.survey_store import SurveyStore

FACTS = ("institution", "investigator", "contact", "protocol")
"""What a board asks for that is the same in every language."""


@dataclass(frozen=True, slots=True)
class ConsentText:
    """The whole text of a consent page, as a participant read it."""

    language: str
    text: str

    @property
    def version(self) -> str:
        """The digest of the text, which changes with any change of the text."""
        return digest([self.language, self.text])[:12]


@dataclass(frozen=True, slots=True)
class ConsentVersion:
    """A version of the text, and how many people agreed to it."""

    version: str
    language: str
    text: str
    first: float
    people: int


def keep_consent(db: sa.Connection, insert: Any, participant: int, text: ConsentText, at: float) -> None:
    """Store which version a participant agreed to."""
    keep_text(db, insert, text, at)
    db.execute(sa.insert(consents), {"participant": participant, "version": text.version, "at": at})


def keep_text(db: sa.Connection, insert: Any, text: ConsentText, at: float) -> None:
    """Store a version of the text if it is new."""
    row = {"version": text.version, "language": text.language, "text": text.text, "first": at}
    db.execute(insert(consent_texts).values(row).on_conflict_do_nothing(index_elements=["version"]))


def versions(database: SurveyStore) -> list[ConsentVersion]:
    """Return all text versions that somebody decided about, oldest first, with the number who agreed, without previews.

    Texts of the questionnaire are included.
    """
    in_profile = sa.select(profile_consents.c.participant, profile_consents.c.version).where(profile_consents.c.agreed)
    agreed = sa.select(consents.c.participant, consents.c.version).union(in_profile).subquery()
    counted = sa.case((participants.c.platform != PREVIEW, 1), else_=0)
    query = (
        sa.select(consent_texts, sa.func.coalesce(sa.func.sum(counted), 0).label("people"))
        .select_from(
            consent_texts.outerjoin(agreed, agreed.c.version == consent_texts.c.version).outerjoin(
                participants, participants.c.id == agreed.c.participant
            )
        )
        .group_by(*consent_texts.c)
        .order_by(consent_texts.c.first)
    )
    return [ConsentVersion(r.version, r.language, r.text, r.first, int(r.people)) for r in database.rows(query)]


def missing(section: SurveySection) -> list[str]:
    """Return the keys that an ethics board requires and the study file lacks."""
    ethics, pay = section.ethics, section.pay
    keys = [f"survey.ethics.{name}" for name in (*FACTS, "keep_until") if not getattr(ethics, name)]
    first = section.languages[0]
    if not ethics.pages.get(first) and not ethics.purpose:
        keys.append("survey.ethics.purpose")
    for language in section.languages[1:]:
        if not ethics.pages.get(language):
            keys += [f"survey.ethics.translations.{language}.{name}" for name in _untranslated(ethics, language)]
    return keys + [f"survey.pay.{name}" for name in ("per_task", "minutes_per_task") if not pay.says(name)]


def _untranslated(ethics: EthicsSection, language: str) -> list[str]:
    """Return the texts that exist in the survey's first language and not in this one; always require the purpose."""
    texts = translation(ethics, language)
    return [
        name
        for name in EthicsTexts.model_fields
        if (name == "purpose" or getattr(ethics, name)) and not (texts and getattr(texts, name))
    ]


def translation(ethics: EthicsSection, language: str) -> EthicsTexts | None:
    """Return the texts in another language than the survey's first."""
    return next((texts for code, texts in ethics.translations.items() if code == language), None)


def purpose(ethics: EthicsSection, language: str, first: str) -> str:
    """Return the purpose of the study in a language; empty if there is none."""
    translated = translation(ethics, language)
    return (translated.purpose if translated else "") or (ethics.purpose if language == first else "")
