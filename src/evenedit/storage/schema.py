"""The tables of a study's database."""

from __future__ import annotations

import sqlalchemy as sa

VERSION = 2
"""Counts up when a table changes; `storage/migrations` brings earlier databases up to it."""

metadata = sa.MetaData()
facts = sa.Table(
    "facts",
    metadata,
    sa.Column("key", sa.String, primary_key=True),
    sa.Column("value", sa.String, nullable=False),
)
runs = sa.Table(
    "runs",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("started", sa.String, nullable=False),
    sa.Column("finished", sa.String),
    sa.Column("provenance", sa.JSON, nullable=False),
)
sources = sa.Table(
    "sources",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("image", sa.String, nullable=False),
    sa.Column("attributes", sa.JSON, nullable=False),
    sa.Column("origin", sa.String, nullable=False),
)
features = sa.Table(
    "features",
    metadata,
    sa.Column("source_id", sa.String, primary_key=True),
    sa.Column("extractor", sa.String, primary_key=True),
    sa.Column("text", sa.String, nullable=False),
    sa.Column("detail", sa.JSON, nullable=False),
)
requests = sa.Table(
    "requests",
    metadata,
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
edits = sa.Table(
    "edits",
    metadata,
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("outcome", sa.String, nullable=False),
    sa.Column("image", sa.String),
    sa.Column("detail", sa.JSON, nullable=False),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("run_id", sa.Integer, nullable=False),
)
submissions = sa.Table(
    "submissions",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("request_id", sa.String, nullable=False, index=True),
    sa.Column("provider", sa.String, nullable=False),
    sa.Column("job", sa.String),
    sa.Column("price", sa.Float, nullable=False),
    sa.Column("state", sa.String, nullable=False),
    sa.Column("answer", sa.JSON),
    sa.Column("created", sa.String, nullable=False),
    sa.Column("run_id", sa.Integer, nullable=False),
)
replies = sa.Table(
    "replies",
    metadata,
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("rater", sa.String, primary_key=True),
    sa.Column("revision", sa.String, primary_key=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("reason", sa.String, nullable=False),
    sa.Column("raw", sa.String, nullable=False),
    sa.Column("run_id", sa.Integer, nullable=False),
)
ratings = sa.Table(
    "ratings",
    metadata,
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("rater", sa.String, primary_key=True),
    sa.Column("revision", sa.String, primary_key=True),
    sa.Column("question_id", sa.String, primary_key=True),
    sa.Column("value", sa.Integer),
    sa.Column("confidence", sa.Float),
)
measurements = sa.Table(
    "measurements",
    metadata,
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("version", sa.String, primary_key=True),
    sa.Column("numbers", sa.JSON, nullable=False),
    sa.Column("reasons", sa.JSON, nullable=False),
    sa.Column("run_id", sa.Integer, nullable=False),
)
cases = sa.Table(
    "cases",
    metadata,
    sa.Column("sample", sa.String, primary_key=True),
    sa.Column("request_id", sa.String, primary_key=True),
    sa.Column("probability", sa.Float, nullable=False),
)
calls = sa.Table(
    "calls",
    metadata,
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
jobs = sa.Table(
    "jobs",
    metadata,
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
reviews = sa.Table(
    "reviews",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("request_id", sa.String, nullable=False, index=True),
    sa.Column("rater", sa.String, nullable=False),
    sa.Column("answers", sa.JSON, nullable=False),
    sa.Column("note", sa.String, nullable=False),
    sa.Column("at", sa.String, nullable=False),
    sa.Column("undone", sa.String),
)
