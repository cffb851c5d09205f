"""Schema 3: what participants say about themselves, and that they agreed to it, apart from their answers."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Create the new tables."""
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
