"""People: who sees what."""
