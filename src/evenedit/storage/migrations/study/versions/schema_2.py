"""Schema 2: paid submissions to services."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Create the table of submissions."""
    op.create_table(
        "submissions",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("request_id", sa.String, nullable=False),
        sa.Column("provider", sa.String, nullable=False),
        sa.Column("job", sa.String),
        sa.Column("price", sa.Float, nullable=False),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("answer", sa.JSON),
        sa.Column("created", sa.String, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
    )
    op.create_index("ix_submissions_request_id", "submissions", ["request_id"])
