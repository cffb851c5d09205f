"""Schema 1, the first: new databases are created by `storage.migrations`."""

revision = "1"
down_revision = None
