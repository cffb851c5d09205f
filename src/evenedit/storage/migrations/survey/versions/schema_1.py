"""Schema 1, the base revision."""

from __future__ import annotations

import secrets

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create the tables, and the secret with which pseudonyms and invitations are made."""
    op.create_table(
        "survey_facts",
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("value", sa.String, nullable=False),
    )
    op.create_table(
        "survey_items",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("survey", sa.Integer, nullable=False),
        sa.Column("task", sa.Integer, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("outputs", sa.JSON, nullable=False),
        sa.Column("expected", sa.JSON, nullable=False),
    )
    op.create_table(
        "survey_participants",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("survey", sa.Integer, nullable=False),
        sa.Column("platform", sa.String, nullable=False),
        sa.Column("external", sa.String),
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
    op.create_table(
        "survey_seats",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("survey", sa.Integer, nullable=False),
        sa.Column("task", sa.Integer, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), unique=True),
        sa.Column("expires", sa.Float),
        sa.UniqueConstraint("survey", "task", "number"),
    )
    op.create_table(
        "survey_shown",
        sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
        sa.Column("item", sa.Integer, sa.ForeignKey("survey_items.id"), primary_key=True),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("swapped", sa.Boolean, nullable=False),
    )
    op.create_table(
        "survey_answers",
        sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
        sa.Column("item", sa.Integer, sa.ForeignKey("survey_items.id"), primary_key=True),
        sa.Column("slot", sa.String, primary_key=True),
        sa.Column("question", sa.String, primary_key=True),
        sa.Column("value", sa.Integer, nullable=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("milliseconds", sa.BigInteger, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "survey_log",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("action", sa.String, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
    )
    op.create_table(
        "survey_events",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "survey_decisions",
        sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
        sa.Column("decision", sa.String, nullable=False),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "survey_consent_texts",
        sa.Column("version", sa.String, primary_key=True),
        sa.Column("language", sa.String, nullable=False),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("first", sa.Float, nullable=False),
    )
    op.create_table(
        "survey_consents",
        sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
        sa.Column("version", sa.String, sa.ForeignKey("survey_consent_texts.version"), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "survey_removals",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("about", sa.String, nullable=False),
        sa.Column("reply", sa.String, nullable=False),
        sa.Column("settled", sa.Float),
        sa.Column("actor", sa.String, nullable=False),
        sa.Column("note", sa.String, nullable=False),
    )
    op.create_table(
        "survey_profile_consents",
        sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
        sa.Column("origin", sa.String, primary_key=True),
        sa.Column("agreed", sa.Boolean, nullable=False),
        sa.Column("sensitive", sa.Boolean, nullable=False),
        sa.Column("version", sa.String, sa.ForeignKey("survey_consent_texts.version"), nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "survey_profiles",
        sa.Column("participant", sa.Integer, sa.ForeignKey("survey_participants.id"), primary_key=True),
        sa.Column("question", sa.String, primary_key=True),
        sa.Column("value", sa.String),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("origin", sa.String, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    facts = sa.table("survey_facts", sa.column("key", sa.String), sa.column("value", sa.String))
    op.bulk_insert(facts, [{"key": "key", "value": secrets.token_hex(32)}])
