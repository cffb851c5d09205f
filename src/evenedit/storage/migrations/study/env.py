"""Alembic executes this file to apply the migrations of the study's database."""

from evenedit.storage.migrations.environment import run

run()
