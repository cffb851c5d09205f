"""Alembic executes this file to apply the migrations of the survey's database."""

from evenedit.storage.migrations.environment import run

run()
