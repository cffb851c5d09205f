"""Schema 3: leases, by which several runs share the work on one database."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Create the table of leases."""
    op.create_table(
        "leases",
        sa.Column("key", sa.String, primary_key=True),
        sa.Column("owner", sa.String, nullable=False, index=True),
        sa.Column("until", sa.Float, nullable=False),
    )
