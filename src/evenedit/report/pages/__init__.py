"""The pages of a report."""
