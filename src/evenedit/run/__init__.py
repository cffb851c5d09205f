"""Make the edits, measurements and ratings of a study."""
