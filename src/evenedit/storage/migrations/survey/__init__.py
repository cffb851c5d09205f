"""The migrations of the survey's database."""
