"""Schema 1, the base revision."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "facts",
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("value", sa.String, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("started", sa.String, nullable=False),
        sa.Column("finished", sa.String),
        sa.Column("provenance", sa.JSON, nullable=False),
    )
    op.create_table(
        "sources",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("image", sa.String, nullable=False),
        sa.Column("attributes", sa.JSON, nullable=False),
        sa.Column("origin", sa.String, nullable=False),
    )
    op.create_table(
        "features",
        sa.Column("source_id", sa.String, primary_key=True),
        sa.Column("extractor", sa.String, primary_key=True),
        sa.Column("text", sa.String, nullable=False),
        sa.Column("detail", sa.JSON, nullable=False),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.String, primary_key=True),
        sa.Column("experiment", sa.String, nullable=False),
        sa.Column("condition", sa.String, nullable=False),
        sa.Column("source_ids", sa.JSON, nullable=False),
        sa.Column("prompt_id", sa.String, nullable=False),
        sa.Column("instruction", sa.String, nullable=False),
        sa.Column("editor", sa.String, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("seed", sa.Integer, nullable=False),
    )
    op.create_table(
        "edits",
        sa.Column("request_id", sa.String, primary_key=True),
        sa.Column("outcome", sa.String, nullable=False),
        sa.Column("image", sa.String),
        sa.Column("detail", sa.JSON, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
    )
    op.create_table(
        "replies",
        sa.Column("request_id", sa.String, primary_key=True),
        sa.Column("rater", sa.String, primary_key=True),
        sa.Column("revision", sa.String, primary_key=True),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("status", sa.String, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("raw", sa.String, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
    )
    op.create_table(
        "ratings",
        sa.Column("request_id", sa.String, primary_key=True),
        sa.Column("rater", sa.String, primary_key=True),
        sa.Column("revision", sa.String, primary_key=True),
        sa.Column("question_id", sa.String, primary_key=True),
        sa.Column("value", sa.Integer),
        sa.Column("confidence", sa.Float),
    )
    op.create_table(
        "measurements",
        sa.Column("request_id", sa.String, primary_key=True),
        sa.Column("version", sa.String, primary_key=True),
        sa.Column("numbers", sa.JSON, nullable=False),
        sa.Column("reasons", sa.JSON, nullable=False),
        sa.Column("run_id", sa.Integer, nullable=False),
    )
    op.create_table(
        "cases",
        sa.Column("sample", sa.String, primary_key=True),
        sa.Column("request_id", sa.String, primary_key=True),
        sa.Column("probability", sa.Float, nullable=False),
    )
    op.create_table(
        "calls",
        sa.Column("request_id", sa.String, primary_key=True),
        sa.Column("rater", sa.String, primary_key=True),
        sa.Column("revision", sa.String, primary_key=True),
        sa.Column("via", sa.String, nullable=False),
        sa.Column("model", sa.String, nullable=False),
        sa.Column("input", sa.Integer, nullable=False),
        sa.Column("output", sa.Integer, nullable=False),
        sa.Column("content", sa.String, nullable=False),
        sa.Column("obtained", sa.String, nullable=False),
        sa.Column("job", sa.String),
    )
    op.create_table(
        "jobs",
        sa.Column("tag", sa.String, primary_key=True),
        sa.Column("rater", sa.String, nullable=False),
        sa.Column("revision", sa.String, nullable=False),
        sa.Column("remote", sa.String),
        sa.Column("state", sa.String, nullable=False),
        sa.Column("told", sa.String, nullable=False),
        sa.Column("items", sa.JSON, nullable=False),
        sa.Column("created", sa.String, nullable=False),
        sa.Column("ended", sa.String),
        sa.Column("run_id", sa.Integer, nullable=False),
    )
    op.create_table(
        "reviews",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("request_id", sa.String, nullable=False),
        sa.Column("rater", sa.String, nullable=False),
        sa.Column("answers", sa.JSON, nullable=False),
        sa.Column("note", sa.String, nullable=False),
        sa.Column("at", sa.String, nullable=False),
        sa.Column("undone", sa.String),
    )
    op.create_index("ix_reviews_request_id", "reviews", ["request_id"])
