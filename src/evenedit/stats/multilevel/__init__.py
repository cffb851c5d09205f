"""A multilevel model of single edits beside the design-based numbers."""
