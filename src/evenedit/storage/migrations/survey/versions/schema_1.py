"""Schema 1, the base revision: new databases are created at the present version, so that it has nothing to do."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """Do nothing."""
