"""Where edits run."""
