"""The tables of the survey's database: participants, slots and answers, separate from the study's results.

On SQLite it is a file of its own (`survey.db`), so that a study's database can be passed on without anybody's id; on
PostgreSQL its tables stand beside the study's.
"""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 1
"""Counts up when a table changes; `storage/migrations` brings earlier databases up to it."""
PREVIEW = "preview"
"""The platform of participants who never count."""
DATABASE = "survey.db"
LOCK = "survey.lock"

metadata = sa.MetaData()

facts = sa.Table(
    "survey_facts",
    metadata,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("value", sa.String, nullable=False),
)
items = sa.Table(
    "survey_items",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("survey", sa.Integer, nullable=False),
    sa.Column("task", sa.Integer, nullable=False),
    sa.Column("kind", sa.String, nullable=False),  # case, gold or instructed
    sa.Column("outputs", sa.JSON, nullable=False),  # request ids: the baseline, then the mitigated one
    sa.Column("expected", sa.JSON, nullable=False),
)
participants = sa.Table(
    "survey_participants",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("survey", sa.Integer, nullable=False),
    sa.Column("platform", sa.String, nullable=False),
    sa.Column("external", sa.String),  # the platform's id; NULL after withdrawal
    sa.Column("study", sa.String, nullable=False),
    sa.Column("session", sa.String, nullable=False),
    sa.Column("token", sa.String, unique=True),
    sa.Column("resume", sa.String, unique=True),
    sa.Column("pseudonym", sa.String, unique=True),
    sa.Column("stage", sa.String, nullable=False),
    sa.Column("ending", sa.String),
    sa.Column("tries", sa.Integer, nullable=False),
    sa.Column("task", sa.Integer),
    sa.Column("arrived", sa.Float, nullable=False),
    sa.Column("consented", sa.Float),
    sa.Column("claimed", sa.Float),
    sa.Column("submitted", sa.Float),
    sa.UniqueConstraint("survey", "platform", "external"),
)
slots = sa.Table(
    "survey_seats",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("survey", sa.Integer, nullable=False),
    sa.Column("task", sa.Integer, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), unique=True),
    sa.Column("expires", sa.Float),  # NULL: free, or kept for good by who submitted
    sa.UniqueConstraint("survey", "task", "number"),
)
displayed = sa.Table(
    "survey_shown",
    metadata,
    sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
    sa.Column("item", sa.Integer, sa.ForeignKey("survey_items.id"), primary_key=True),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("swapped", sa.Boolean, nullable=False),  # the mitigated output is Image A
)
answers = sa.Table(
    "survey_answers",
    metadata,
    sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
    sa.Column("item", sa.Integer, sa.ForeignKey("survey_items.id"), primary_key=True),
    sa.Column("slot", sa.String, primary_key=True),
    sa.Column("question", sa.String, primary_key=True),
    sa.Column("value", sa.Integer, nullable=False),
    sa.Column("sequence", sa.BigInteger, nullable=False),
    sa.Column("milliseconds", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
log = sa.Table(
    "survey_log",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("actor", sa.String, nullable=False),
    sa.Column("action", sa.String, nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
)
events = sa.Table(
    "survey_events",
    metadata,
    sa.Column("id", sa.String, primary_key=True),  # of a platform's webhook: each is acted on once
    sa.Column("at", sa.Float, nullable=False),
)
decisions = sa.Table(
    "survey_decisions",
    metadata,
    sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
    sa.Column("decision", sa.String, nullable=False),  # approved, rejected or return requested
    sa.Column("actor", sa.String, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
consent_texts = sa.Table(
    "survey_consent_texts",
    metadata,
    sa.Column("version", sa.String, primary_key=True),  # a digest of the text
    sa.Column("language", sa.String, nullable=False),
    sa.Column("text", sa.String, nullable=False),  # as it was shown
    sa.Column("first", sa.Float, nullable=False),
)
consents = sa.Table(
    "survey_consents",
    metadata,
    sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
    sa.Column("version", sa.String, sa.ForeignKey("survey_consent_texts.version"), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
profile_consents = sa.Table(
    "survey_profile_consents",
    metadata,
    sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
    sa.Column("origin", sa.String, primary_key=True),  # questionnaire or platform
    sa.Column("agreed", sa.Boolean, nullable=False),
    sa.Column("sensitive", sa.Boolean, nullable=False),  # to ethnicity and the like as well
    sa.Column("version", sa.String, sa.ForeignKey("survey_consent_texts.version"), nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
profiles = sa.Table(
    "survey_profiles",
    metadata,
    sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
    sa.Column("question", sa.String, primary_key=True),
    sa.Column("value", sa.String),  # NULL: there is none, and `state` says why
    sa.Column("state", sa.String, nullable=False),  # answered, withheld, revoked or expired
    sa.Column("origin", sa.String, nullable=False),  # questionnaire or platform
    sa.Column("at", sa.Float, nullable=False),
)
removals = sa.Table(
    "survey_removals",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("about", sa.String, nullable=False),  # the picture, in the words of who asks
    sa.Column("reply", sa.String, nullable=False),  # how to reach them; empty once it is settled
    sa.Column("settled", sa.Float),
    sa.Column("actor", sa.String, nullable=False),
    sa.Column("note", sa.String, nullable=False),
)
OF_ONE_PERSON = (answers, displayed, decisions, consents, profiles, profile_consents)
"""What is stored of a participant beside their row and their slot; all of it is deleted with them."""
