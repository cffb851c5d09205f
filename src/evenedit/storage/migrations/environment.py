"""Run the migrations of either database with Alembic, on the caller's connection and in its transaction."""

from __future__ import annotations

from alembic import context

from evenedit.storage.migrations import History


def run() -> None:
    """Apply the migrations that the command asked for."""
    history: History = context.config.attributes["history"]
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=history.metadata,
        version_table=history.revision_table,
    )
    with context.begin_transaction():
        context.run_migrations()
