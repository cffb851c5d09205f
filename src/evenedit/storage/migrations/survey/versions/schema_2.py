"""Schema 2: what each participant agreed to, and requests of pictured people for removal."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Create the new tables."""
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
