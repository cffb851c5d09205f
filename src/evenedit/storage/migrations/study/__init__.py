"""The migrations of the study's database."""
